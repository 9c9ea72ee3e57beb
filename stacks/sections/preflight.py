"""What is looked at before anything is ordered, and what that costs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from metal_ipi.stacks.sections.base import Section, matching
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
_Reason = Annotated[
    str,
    matching(r"\S[^\n]{2,199}", "it is no reason", "say in one line, of 3 to 200 characters, why it may be so"),
]


class LiveChecks(Section):
    """How machines are checked in the live system that installs them, before anything is written to their disks."""

    overrides: dict[LiveCheck, _Reason] = Field(
        default_factory=dict[LiveCheck, _Reason],
        description="checks whose errors are told as warnings: name → reason, which the state keeps",
    )


class Preflight(Section):
    """How a stack is checked before anything is ordered."""

    excused: tuple[Check, ...] = Field(
        default=(),
        strict=False,
        description="checks whose errors are told as warnings, where you know better; take it back afterwards",
    )
    hashed_mib: int = Field(
        default=64,
        ge=0,
        le=1_000_000,
        description="boot files up to this size (MiB) are fetched and their hashes computed; larger ones are asked for",
    )

    live: LiveChecks | None = Field(
        default=None,
        description="check machines that are installed to disk in their live systems, together with the others of their"
        " role, before anything is written; {} checks with nothing overridden",
    )
    images: bool | None = Field(
        default=None,
        description="whether registries are asked, with the pull secret, for all images of the release; not set: where"
        " installConfig.imageDigestSources names mirrors",
    )


class Cost(Section):
    """Where prices are from."""

    price_file: PathHere | None = Field(
        default=None,
        description="a file of prices (JSON, see docs/cost.md), relative to the project; not set: the platform's own",
    )
