"""The data of a cluster picture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tools.pictures.resources import Change

Role = Literal["control-plane", "worker", "bootstrap"]
ROLES: tuple[Role, ...] = ("control-plane", "worker", "bootstrap")


ARBITER = "arbiter: etcd alone"
"""Note of a machine that is drawn with the control plane, but does not serve the API."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One machine."""

    name: str
    role: Role
    kind: str
    """Its plan, or the name of its server."""
    public: str = ""
    private: str = ""
    mac: str = ""
    bmc: str = ""
    """Host of its BMC."""
    notes: tuple[str, ...] = ()
    """Special properties, for people."""
    gone: bool = False
    """Whether the bootstrap machine was removed."""
    change: Change = "same"


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network that machines share."""

    name: str
    detail: str = ""
    roles: tuple[Role, ...] = ()
    """The roles whose machines are in it."""
    change: Change = "same"


@dataclass(frozen=True, kw_only=True)
class Name:
    """A DNS name that clients use, and its values."""

    name: str
    values: tuple[str, ...]
    change: Change = "same"


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Addresses for services of type LoadBalancer."""

    name: str
    addresses: str
    how: str
    """How the addresses are announced."""
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
    """Metro or facility; empty for own servers."""
    zone: str
    """The DNS zones, or who keeps the names."""
    api: tuple[str, str]
    """How the API is reached, and its own address; an empty address if it has none."""
    machines: tuple[Machine, ...]
    networks: tuple[Network, ...]
    names: tuple[Name, ...]
    """The names, without those of single nodes."""
    nodes: int
    """Number of nodes with names."""
    pools: tuple[Pool, ...]
    planned: bool
    """Whether it shows a preview."""

    @property
    def things(self) -> tuple[Thing, ...]:
        """Everything that an operation may change."""
        return (*self.machines, *self.networks, *self.names, *self.pools)

    @property
    def changes(self) -> frozenset[Change]:
        """The changes of a preview. Unchanged networks are ignored, because some exist without any resource."""
        told = (
            each for each in self.things if self.planned and (each.change != "same" or not isinstance(each, Network))
        )
        return frozenset[Change](each.change for each in told)

    @property
    def is_new(self) -> bool:
        """Whether the whole cluster is new."""
        return self.changes == frozenset[Change](("create",))

    @property
    def serving(self) -> list[Machine]:
        """The control plane machines that serve the API."""
        return [each for each in self.of("control-plane") if ARBITER not in each.notes]

    def of(self, role: Role) -> list[Machine]:
        """The machines of a role, sorted by name, numbers in numerical order."""
        return sorted((each for each in self.machines if each.role == role), key=lambda machine: order(machine.name))


def order(name: str) -> list[tuple[int, str]]:
    """Sort key for names, so that 10 comes after 9."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]
