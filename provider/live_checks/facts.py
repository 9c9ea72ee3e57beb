"""Facts about a machine from its live system."""

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
    """What chrony reports."""

    synchronised: bool
    source: str
    """The server that it follows; empty if there is none."""


class Disk(_Answer):
    """The disk that will be installed to."""

    path: str
    size: int
    """Its size in bytes."""
    latencies: Annotated[tuple[float, ...], Field(min_length=1)]
    """Milliseconds of single writes of 4 KiB, until they were on the disk."""

    @property
    def slowest(self) -> float:
        """The 99th percentile of the latencies, in milliseconds."""
        return sorted(self.latencies)[max(0, -(-len(self.latencies) * 99 // 100) - 1)]


class Peer(_Answer):
    """The connection to another machine."""

    mtu: int
    """The MTU of the device that leads there, in bytes."""
    whole: bool
    """Whether a packet of that size got there and back without fragmentation."""
    lost: float
    """Lost small packets, in per cent."""
    ms: float | None
    """The average round-trip time in milliseconds; None if no packet came back."""


class Facts(_Answer):
    """The facts about one machine."""

    hostname: str
    memory_mib: int | None
    processors: int | None
    clock: Clock | None
    """None if there is no chrony."""
    disk: Disk
    routes: tuple[str, ...]
    """The gateways of its default routes."""
    names: Mapping[str, tuple[str, ...]]
    """The resolved IPv4 addresses, by name."""
    reverse: tuple[str, ...]
    """The reverse names of its own address."""
    registries: Mapping[str, str]
    """The HTTP status of each registry, or the error."""
    peers: Mapping[str, Peer] | None
    """The connections, by address; None if there is no ping."""
    ahead: float = 0.0
    """How many seconds its clock is ahead of ours."""
    uncertain: float = 0.0
    """The uncertainty of `ahead`, in seconds."""

    @property
    def reached_all(self) -> bool:
        """Whether no packet to another machine was lost."""
        return all(way.whole and way.lost == 0 for way in (self.peers or {}).values())


def parse(text: str, *, ahead: float, uncertain: float) -> Facts:
    """Parse the probe's output. Raises ValueError."""
    return Facts.model_validate({**json.loads(text), "ahead": ahead, "uncertain": uncertain})
