"""What a machine's live system answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

PROBE = Path(__file__).with_name("probe.sh")


class _Answer(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class Clock(_Answer):
    """What chrony says."""

    synchronised: bool
    source: str
    """The server that it follows; empty where there is none."""


class Disk(_Answer):
    """The disk that is to be installed to."""

    path: str
    size: int
    """Bytes."""
    latencies: Annotated[tuple[float, ...], Field(min_length=1)]
    """Milliseconds of single writes of 4 KiB until the disk had them."""

    @property
    def slowest(self) -> float:
        """The 99th percentile, in milliseconds."""
        return sorted(self.latencies)[max(0, -(-len(self.latencies) * 99 // 100) - 1)]


class Peer(_Answer):
    """The way to another machine."""

    mtu: int
    """Of the device that leads there, in bytes."""
    whole: bool
    """Whether a packet of that size got there and back in one piece."""
    lost: float
    """Of small packets, in per cent."""
    ms: float | None
    """Milliseconds there and back, on the average; None where none came back."""


class Facts(_Answer):
    """One machine."""

    hostname: str
    memory_mib: int | None
    processors: int | None
    clock: Clock | None
    """None without chrony."""
    disk: Disk
    routes: tuple[str, ...]
    """Where default routes lead."""
    names: Mapping[str, tuple[str, ...]]
    """IPv4 addresses by name."""
    reverse: tuple[str, ...]
    """What its own address is called."""
    registries: Mapping[str, str]
    """The HTTP status that each answered, or why there is none."""
    peers: Mapping[str, Peer] | None
    """By address; None without ping."""
    ahead: float = 0.0
    """Seconds that its clock is ahead of ours."""
    uncertain: float = 0.0
    """Seconds by which that may be wrong."""


def parse(text: str, *, ahead: float, uncertain: float) -> Facts:
    """What the probe printed. Raises ValueError for anything else."""
    return Facts.model_validate({**json.loads(text), "ahead": ahead, "uncertain": uncertain})
