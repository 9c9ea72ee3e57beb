"""From settings to orders: one list of plain data for ordering, preflight and cost."""

from __future__ import annotations

from metal_ipi.provider.types import CUSTOM_IPXE, AddressOrder, MachineOrder, NetworkOrder
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.names import API_ADDRESS, INGRESS_ADDRESS, Nodes, pool_name
from metal_ipi.stacks.platforms.equinix_metal.settings import EquinixMetal, Network
from metal_ipi.stacks.sections.api_address import KubeVip
from metal_ipi.stacks.sections.service_addresses import MetalLbBgp

_REHEARSAL_ID = "00000000-0000-4000-8000-000000000000"


def project_id(settings: Settings, metal: EquinixMetal) -> str | None:
    """The project to use; None if one is created."""
    if settings.rehearsal and metal.project_id is None and metal.project_name is None:
        return _REHEARSAL_ID
    return metal.project_id


def organization_id(settings: Settings, metal: EquinixMetal) -> str | None:
    """The owner of the project to create; None if an existing one is used."""
    if settings.rehearsal and metal.project_name is not None and metal.organization_id is None:
        return _REHEARSAL_ID
    return metal.organization_id


def machines(settings: Settings, metal: EquinixMetal) -> tuple[MachineOrder, ...]:
    """The orders of machines, one for each role that has machines."""
    nodes = Nodes.of(settings)
    plans = metal.plans(settings.boot.architecture)
    return tuple(
        MachineOrder(
            role=role,
            hostnames=tuple(node.hostname for node in members),
            plan=plans[role],
            operating_system=CUSTOM_IPXE,
            reservations=metal.reservations.of(role),
            spot_max_price=metal.spot.max_price if metal.spot and role == "worker" else None,
            subnet_length=metal.machine_subnets.of(role),
        )
        for role, members in (
            ("bootstrap", (nodes.bootstrap,) if nodes.control_plane else ()),
            ("control-plane", nodes.control_plane),
            ("worker", nodes.workers),
        )
        if members
    )


def network(section: Network) -> NetworkOrder:
    """The order of a VLAN."""
    return NetworkOrder(
        name=section.name,
        vlan=section.vlan,
        subnet=section.subnet,
        gateway_size=section.gateway.size if section.gateway else None,
    )


def addresses(settings: Settings) -> tuple[AddressOrder, ...]:
    """The addresses to reserve. Only the cluster's own stack reserves addresses."""
    if settings.pool is not None:
        return ()
    services = settings.service_addresses
    announced = ((API_ADDRESS, settings.api_address), (INGRESS_ADDRESS, settings.ingress_address))
    own = [name for name, each in announced if isinstance(each, KubeVip) and each.address is None]
    pools = services.pools if isinstance(services, MetalLbBgp) else ()
    return (
        *(AddressOrder(name=name, quantity=1) for name in own),
        *(AddressOrder(name=pool_name(pool), quantity=pool.reserve) for pool in pools if pool.reserve is not None),
    )
