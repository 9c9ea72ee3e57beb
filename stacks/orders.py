"""From settings to what is ordered: the one list, plain data, for those who order, preflight and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from components.machines.equinix_metal import OPERATING_SYSTEM
from provider.types import AddressOrder, MachineOrder, NetworkOrder, Orders
from stacks.names import Names
from stacks.sections.api_address import KubeVip
from stacks.sections.equinix_metal import EquinixMetal, Network
from stacks.sections.service_addresses import BgpPool, MetalLbBgp
from stacks.settings import Settings

API_ADDRESS = "api-address"
"""What the API's reserved address is called."""
POOLS = "service-addresses"
"""What the reserved blocks of service addresses begin with."""


def orders(settings: Settings) -> Orders | None:
    """What the stack orders; None where its machines are there already."""
    metal = settings.platform
    if not isinstance(metal, EquinixMetal):
        return None
    return Orders(
        metro=metal.metro,
        facilities=metal.facilities,
        machines=machines(settings, metal),
        addresses=addresses(settings),
        networks=tuple(map(network, metal.networks)),
    )


def machines(settings: Settings, metal: EquinixMetal) -> tuple[MachineOrder, ...]:
    """The machines, by role; roles without any are left out."""
    names = Names.of(settings)
    plans = metal.plans(settings.boot.architecture)
    return tuple(
        MachineOrder(
            role=role,
            hostnames=hostnames,
            plan=plans[role],
            operating_system=OPERATING_SYSTEM,
            reservations=metal.reservations.of(role),
            spot_max_price=metal.spot.max_price if metal.spot and role == "worker" else None,
            subnet_length=metal.machine_subnets.of(role),
        )
        for role, hostnames in (
            ("bootstrap", (names.bootstrap,)),
            ("control-plane", names.control_plane),
            ("worker", names.workers),
        )
        if hostnames
    )


def as_kept(ordered: Orders, there: Mapping[str, MachineOrder]) -> Orders:
    """The same with machines as they are there, by host name: those of a role that differ are orders of their own."""
    found: dict[MachineOrder, list[str]] = {}
    for order in ordered.machines:
        for hostname in order.hostnames:
            found.setdefault(replace(there.get(hostname, order), hostnames=()), []).append(hostname)
    return replace(ordered, machines=tuple(replace(order, hostnames=tuple(names)) for order, names in found.items()))


def network(section: Network) -> NetworkOrder:
    """A VLAN."""
    return NetworkOrder(
        name=section.name,
        vlan=section.vlan,
        subnet=section.subnet,
        gateway_size=section.gateway.size if section.gateway else None,
    )


def addresses(settings: Settings) -> tuple[AddressOrder, ...]:
    """The addresses that are reserved."""
    api, services = settings.api_address, settings.service_addresses
    own = isinstance(api, KubeVip) and api.address is None
    pools = services.pools if isinstance(services, MetalLbBgp) else ()
    return (
        *([AddressOrder(name=API_ADDRESS, quantity=1)] if own else []),
        *(AddressOrder(name=pool_name(pool), quantity=pool.reserve) for pool in pools if pool.reserve is not None),
    )


def pool_name(pool: BgpPool) -> str:
    """What a pool's reserved block is called."""
    return f"{POOLS}-{pool.name}"
