"""What the program asks of a platform's settings. Nothing above it asks which platform it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pulumi

from metal_ipi.components.boot.host_network import HostNetwork
from metal_ipi.components.boot.network import StaticNetwork
from metal_ipi.components.boot.stream import Artifact, PxeArtifacts
from metal_ipi.components.machines.contract import Platform
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import Orders, Plan
from metal_ipi.stacks.problems import Found


@dataclass(frozen=True, kw_only=True)
class FencedBy:
    """The BMC of a machine, and an account there."""

    machine: str
    """`worker-0`."""
    address: str
    """Its https URL."""
    system_id: str | None
    username: str
    password: str
    """Secret."""
    private_authority: bool
    """Whether its certificate is of an authority of the site's."""


class Keys(Protocol):
    """The keys of a cluster, as `ClusterKeys` has them."""

    @property
    def id(self) -> pulumi.Output[str]: ...
    @property
    def public_key(self) -> pulumi.Output[str]: ...
    @property
    def private_key(self) -> pulumi.Output[str]: ...
    @property
    def host_key_seed(self) -> pulumi.Output[str]: ...


class Facility(Protocol):
    """Where a stack's machines come from, as its settings say."""

    @property
    def ignition_platform(self) -> str:
        """Ignition's platform id of the machines."""
        ...

    @property
    def in_place(self) -> bool:
        """Whether the only machine bootstraps the cluster itself, in the live system that installs it."""
        ...

    @property
    def lent(self) -> Node | None:
        """The worker whose server is the bootstrap machine first; None where none is lent."""
        ...

    @property
    def machine_networks(self) -> tuple[str, ...]:
        """CIDRs of the machines' networks, as far as they are known before there are machines."""
        ...

    @property
    def hosts(self) -> tuple[Mapping[str, str], ...]:
        """The servers as install-config.yaml has them for platform baremetal; nothing where machines are ordered."""
        ...

    @property
    def orders(self) -> Orders | None:
        """What is ordered; None where the machines are there already."""
        ...

    def conflicts(self) -> Found:
        """What cannot go together with the platform's section."""
        ...

    def network(self, node: Node) -> StaticNetwork | None:
        """A machine's network, the bootstrap machine's too; None where DHCP or `host_network` tells it."""
        ...

    def host_network(self, node: Node) -> HostNetwork | None:
        """The same as NMState; None where the settings have none for it."""
        ...

    @property
    def bmcs(self) -> tuple[FencedBy, ...] | str:
        """The BMCs of the machines that last, for nodes that restart each other; or why there are none for them."""
        ...

    def provider_sections(self, iso: Artifact | None) -> dict[str, dict[str, Any]]:
        """The platform's sections of our own provider's configuration; `iso` is CoreOS's live ISO."""
        ...

    def checked(self, plan: Plan, boot: PxeArtifacts) -> Plan:
        """The same preflight plan with what the platform adds to it; `boot` is what the machines boot."""
        ...

    def component(
        self,
        keys: Keys,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
        shared: pulumi.Output[Mapping[str, Any]] | None = None,
    ) -> Platform:
        """Declare the platform.

        Args:
            after: what comes before anything is ordered.
            opts: hand on our own provider.
            shared: in the stack of a pool: what the platform of the cluster's stack shares; else None.
        """
        ...
