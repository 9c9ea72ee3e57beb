"""The interface of a platform's settings. The code that uses it never asks which platform it is."""

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
    """The BMC of a machine, and an account on it."""

    machine: str
    """The machine, e.g. `worker-0`."""
    address: str
    """Its https URL."""
    system_id: str | None
    username: str
    password: str
    """A secret."""
    private_authority: bool
    """Whether the BMC's certificate was issued by a private certificate authority."""


class Keys(Protocol):
    """The keys of a cluster, as in `ClusterKeys`."""

    @property
    def id(self) -> pulumi.Output[str]: ...
    @property
    def public_key(self) -> pulumi.Output[str]: ...
    @property
    def private_key(self) -> pulumi.Output[str]: ...
    @property
    def host_key_seed(self) -> pulumi.Output[str]: ...


class Facility(Protocol):
    """Where a stack's machines come from, according to its settings."""

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
        """The worker whose server is first lent to the bootstrap machine; None if no server is lent."""
        ...

    @property
    def machine_networks(self) -> tuple[str, ...]:
        """CIDRs of the machines' networks, as far as they are known before there are machines."""
        ...

    @property
    def hosts(self) -> tuple[Mapping[str, str], ...]:
        """The servers as in install-config.yaml for platform baremetal; empty if machines are ordered."""
        ...

    @property
    def orders(self) -> Orders | None:
        """What is ordered; None if the machines exist already."""
        ...

    def conflicts(self) -> Found:
        """Settings that contradict the platform's section."""
        ...

    def network(self, node: Node) -> StaticNetwork | None:
        """The static network of a machine or of the bootstrap machine; None if it uses DHCP or `host_network`."""
        ...

    def host_network(self, node: Node) -> HostNetwork | None:
        """A machine's network as NMState; None if the settings have none."""
        ...

    @property
    def bmcs(self) -> tuple[FencedBy, ...] | str:
        """The BMCs of the permanent machines, for fencing; or a text that says why there are none."""
        ...

    def provider_sections(self, iso: Artifact | None) -> dict[str, dict[str, Any]]:
        """The platform's sections of our provider's configuration; `iso` is CoreOS's live ISO."""
        ...

    def checked(self, plan: Plan, boot: PxeArtifacts) -> Plan:
        """The preflight plan, with the platform's own parts added; `boot` is what the machines boot."""
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
            after: resources that must be complete before anything is ordered.
            opts: options that pass on our own provider.
            shared: in the stack of a pool, the outputs that the cluster's platform shares; else None.
        """
        ...
