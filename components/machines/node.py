"""A machine's names and role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Role = Literal["bootstrap", "control-plane", "arbiter", "worker"]
POOLS: Mapping[Role, str] = {"control-plane": "master", "arbiter": "arbiter", "worker": "worker"}
"""The machine config pool of each role; the machine config server serves its configuration under the same name."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """The names of a machine of a cluster. The same names are never used for a machine of another role."""

    fqdn: str
    """Its full name, which is the name of its node: `lab-worker-0.lab.example.com`."""
    hostname: str
    """Its short name, unique within the stack: `lab-worker-0`. Its Pulumi resources are called after it."""
    role: Role
    """Its role in the cluster."""

    @property
    def number(self) -> int:
        """Its number among the machines of its role: the end of its short name. The bootstrap machine has none."""
        return int(self.hostname.rpartition("-")[2])

    @property
    def name(self) -> str:
        """Its name in settings: `worker-0`, `bootstrap`."""
        return self.role if self.role == "bootstrap" else f"{self.role}-{self.number}"
