"""The names of a cluster's machines and reserved addresses."""

from __future__ import annotations

from dataclasses import dataclass

from metal_ipi.components.machines.node import Node, Role
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.sections.service_addresses import BgpPool

API_ADDRESS = "api-address"
"""The name of the API's reserved address."""
INGRESS_ADDRESS = "ingress-address"
"""The name of the reserved address of ingress."""
POOLS = "service-addresses"
"""The prefix of the names of reserved blocks of service addresses."""


def pool_name(pool: BgpPool) -> str:
    """The name of a pool's reserved block."""
    return f"{POOLS}-{pool.name}"


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The machines of a cluster."""

    bootstrap: Node
    control_plane: tuple[Node, ...]
    arbiters: tuple[Node, ...]
    workers: tuple[Node, ...]

    @classmethod
    def of(cls, settings: Settings) -> Nodes:
        """The nodes of the settings. Names contain the role, and are never reused for another role."""

        def node(name: str, role: Role) -> Node:
            hostname = f"{settings.cluster_name}-{name}"
            return Node(fqdn=settings.full(hostname), hostname=hostname, role=role)

        names = settings.machines

        def of(role: Role) -> tuple[Node, ...]:
            return tuple(node(name, role) for name in names if name.startswith(f"{role}-"))

        return cls(
            bootstrap=node("bootstrap", "bootstrap"),
            control_plane=of("control-plane"),
            arbiters=of("arbiter"),
            workers=of("worker"),
        )

    @property
    def etcd(self) -> tuple[Node, ...]:
        """The machines that run a member of etcd."""
        return (*self.control_plane, *self.arbiters)

    @property
    def all(self) -> tuple[Node, ...]:
        """All machines, bootstrap first. The bootstrap machine belongs to the stack with the control plane."""
        return (*([self.bootstrap] if self.control_plane else []), *self.etcd, *self.workers)
