"""What is looked at before anything is ordered, and what that costs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from metal_ipi.stacks.sections.base import Section
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
