"""What is checked before anything is ordered, and where prices come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from metal_ipi.stacks.sections.base import Section, matching, wrong
from metal_ipi.stacks.sections.forms import PathHere

Check = Literal[
    "token",
    "plans",
    "capacity",
    "reservations",
    "spot",
    "limits",
    "names",
    "hardware",
    "bmcs",
    "architecture",
    "disks",
    "cards",
    "twins",
    "firmware",
    "tpm",
    "health",
    "bmc-clock",
    "virtual-media",
    "secure-boot",
    "ironic",
    "addresses",
    "dns",
    "boot-files",
    "artifact-host",
    "installer",
    "images",
    "stream",
    "clock",
]


LiveCheck = Literal[
    "memory",
    "processors",
    "disk-size",
    "disk-latency",
    "clock",
    "default-route",
    "names",
    "host-names",
    "registries",
    "mtu",
    "network",
    "hosts",
]
Reason = Annotated[
    str,
    matching(r"\S[^\n]{2,199}", "it is not a reason", "give the reason in one line of 3 to 200 characters"),
]


class LiveChecks(Section):
    """How machines are checked in the live system that installs them, before anything is written to their disks."""

    overrides: dict[LiveCheck, Reason] = Field(
        default_factory=dict[LiveCheck, Reason],
        description="checks whose errors become warnings: name → reason, which the state keeps",
    )


class Preflight(Section):
    """How a stack is checked before anything is ordered."""

    overrides: dict[Check, Reason] = Field(
        default_factory=dict[Check, Reason],
        description=(
            "checks whose errors become warnings, if you know better: name → reason, which the report shows "
            "and the state keeps"
        ),
    )
    excused: tuple[Check, ...] = Field(
        default=(),
        strict=False,
        description="the older form of overrides, without reasons; it is still read",
    )
    hashed_mib: int = Field(
        default=64,
        ge=0,
        le=1_000_000,
        description=(
            "boot files up to this size (MiB) are downloaded to check their hashes; for larger ones only the "
            "size is requested"
        ),
    )

    live: LiveChecks | None = Field(
        default=None,
        description=(
            "checks of machines in their live systems, before anything is written to their disks, for all "
            "machines of a role together; {}: all checks, without overrides"
        ),
    )
    images: bool | None = Field(
        default=None,
        description=(
            "true: ask the registries for all images of the release, with the pull secret; not set: only if "
            "installConfig.imageDigestSources names mirrors"
        ),
    )

    @model_validator(mode="after")
    def _once(self) -> Preflight:
        for name in self.excused:
            if name in self.overrides:
                raise wrong(f"'{name}' is in it and in overrides", "remove it from excused", at="excused")
        return self

    def lets_pass(self, check: Check) -> bool:
        """Whether the errors of a check are reported as warnings."""
        return check in self.excused or check in self.overrides


class Cost(Section):
    """Where prices come from."""

    price_file: PathHere | None = Field(
        default=None,
        description="a file of prices (JSON, see docs/cost.md), relative to the project; not set: the platform's own",
    )
