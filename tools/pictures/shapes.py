"""What a picture of a cluster shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tools.pictures.resources import Change

Role = Literal["control-plane", "worker", "bootstrap"]
ROLES: tuple[Role, ...] = ("control-plane", "worker", "bootstrap")


ARBITER = "arbiter: etcd alone"
"""The note of a machine that is drawn with the control plane, and serves no API."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One machine."""

    name: str
    role: Role
    kind: str
    """Its plan, or which server it is."""
    public: str = ""
    private: str = ""
    mac: str = ""
    bmc: str = ""
    """Where its BMC answers."""
    notes: tuple[str, ...] = ()
    """What is special about it."""
    gone: bool = False
    """The bootstrap machine, once it was removed."""
    change: Change = "same"


@dataclass(frozen=True, kw_only=True)
class Network:
    """Something that machines share."""

    name: str
    detail: str = ""
    roles: tuple[Role, ...] = ()
    """Whose machines are in it."""
    change: Change = "same"


@dataclass(frozen=True, kw_only=True)
class Name:
    """A name that clients use, and where it leads."""

    name: str
    values: tuple[str, ...]
    change: Change = "same"


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Addresses for services of type LoadBalancer."""

    name: str
    addresses: str
    how: str
    """How they are made known."""
    change: Change = "same"


Thing = Machine | Network | Name | Pool


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A cluster."""

    name: str
    domain: str
    version: str
    platform: str
    place: str
    """Where the platform has it; empty for servers of one's own."""
    zone: str
    """Who keeps its names."""
    api: tuple[str, str]
    """How the API is reached, and at which address of its own; empty where it has none."""
    machines: tuple[Machine, ...]
    networks: tuple[Network, ...]
    names: tuple[Name, ...]
    """Without those of single nodes."""
    nodes: int
    """How many nodes have names."""
    pools: tuple[Pool, ...]
    planned: bool
    """Whether it is a preview's."""

    @property
    def things(self) -> tuple[Thing, ...]:
        """Everything that an operation may change."""
        return (*self.machines, *self.networks, *self.names, *self.pools)

    @property
    def changes(self) -> frozenset[Change]:
        """What becomes of all this, in a preview. Networks that the platform has anyway tell nothing."""
        told = (
            each for each in self.things if self.planned and (each.change != "same" or not isinstance(each, Network))
        )
        return frozenset[Change](each.change for each in told)

    @property
    def is_new(self) -> bool:
        """Whether nothing of it stands yet."""
        return self.changes == frozenset[Change](("create",))

    @property
    def serving(self) -> list[Machine]:
        """The control plane machines that serve the API."""
        return [each for each in self.of("control-plane") if ARBITER not in each.notes]

    def of(self, role: Role) -> list[Machine]:
        """The machines of a role, by name, numbers as numbers."""
        return sorted((each for each in self.machines if each.role == role), key=lambda machine: order(machine.name))


def order(name: str) -> list[tuple[int, str]]:
    """What to sort names by, so that 10 comes after 9."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]
