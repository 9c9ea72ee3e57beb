"""What the settings of an Equinix Metal project mean for the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from metal_ipi.components.boot.host_network import HostNetwork
from metal_ipi.components.boot.network import StaticNetwork
from metal_ipi.components.boot.stream import Artifact, PxeArtifacts
from metal_ipi.components.machines.contract import Platform
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import Orders, Plan
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.contract import Keys
from metal_ipi.stacks.platforms.equinix_metal import orders
from metal_ipi.stacks.platforms.equinix_metal.conflicts import conflicts
from metal_ipi.stacks.platforms.equinix_metal.settings import EquinixMetal
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.api_address import KubeVip
from metal_ipi.stacks.sections.base import revealed


class EquinixMetalFacility:
    """See `Facility`."""

    ignition_platform = "packet"
    in_place = False
    lent = None
    bmcs = "Equinix Metal gives no access to the BMCs of its machines"
    machine_networks: tuple[str, ...] = ()
    """Empty: addresses are known only after the order."""
    hosts: tuple[Mapping[str, str], ...] = ()

    def __init__(self, settings: Settings, section: EquinixMetal) -> None:
        self._settings, self._section = settings, section

    @property
    def orders(self) -> Orders:
        section = self._section
        return Orders(
            metro=section.metro,
            facilities=section.facilities,
            machines=orders.machines(self._settings, section),
            addresses=orders.addresses(self._settings),
            networks=tuple(map(orders.network, section.networks)),
        )

    def conflicts(self) -> Found:
        return conflicts(self._settings, self._section)

    def network(self, node: Node) -> StaticNetwork | None:
        return None

    def host_network(self, node: Node) -> HostNetwork | None:
        """None: names and MAC addresses of cards are not known before a machine is ordered."""
        return None

    def provider_sections(self, iso: Artifact | None) -> dict[str, dict[str, Any]]:
        return {"metal": {"authToken": revealed(self._section.auth_token)}}

    def checked(self, plan: Plan, boot: PxeArtifacts) -> Plan:
        section, api = self._section, self._settings.api_address
        return plan.model_copy(
            update={
                "project_id": orders.project_id(self._settings, section),
                "project_name": section.project_name,
                "organization_id": orders.organization_id(self._settings, section),
                "lifetime_hours": section.lifetime_hours,
                "orders": self.orders,
                "api_address": api.address if isinstance(api, KubeVip) and api.mode == "bgp" else None,
            }
        )

    def component(
        self,
        keys: Keys,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
        shared: pulumi.Output[Mapping[str, Any]] | None = None,
    ) -> Platform:
        # Only a program needs the component, and it takes long to load.
        from metal_ipi.stacks.platforms.equinix_metal.component import component

        return component(self._settings, self._section, keys, after, opts, shared=shared)
