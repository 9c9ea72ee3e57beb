"""Do networks overlap, and are the ordered VLANs and blocks available?"""

from __future__ import annotations

import ipaddress
from itertools import combinations

from metal_ipi.provider.preflight.findings import Finding, error, ok, warning
from metal_ipi.provider.preflight.subject import Subject

NAME = "addresses"
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


async def check(subject: Subject) -> list[Finding]:
    """A finding for each overlap, each VLAN in use, and each block that is not available at once."""
    ours = {name: ipaddress.ip_network(cidr, strict=False) for name, cidr in subject.plan.networks.items()}
    ours |= {
        f"VLAN {network.name}": ipaddress.ip_network(network.subnet, strict=False)
        for network in (subject.plan.orders.networks if subject.plan.orders else ())
        if network.subnet
    }
    problems = [
        _overlap(f"{first} ({ours[first]})", f"{second} ({ours[second]})")
        for first, second in combinations(ours, 2)
        if ours[first].overlaps(ours[second])
    ]
    if subject.account is not None:
        problems += [*await _private(subject, ours), *await _vlans(subject)]
        problems += [*await _metros(subject), *await _blocks(subject)]
    free = ", and VLANs and blocks are free" if subject.account is not None else ""
    return problems or [ok(f"no networks overlap{free}")]


async def _private(subject: Subject, ours: dict[str, _Network]) -> list[Finding]:
    """Overlaps with the machines' private addresses (from 10.0.0.0/8), over which they reach each other."""
    return [
        _overlap(f"{name} ({network})", f"the project's private addresses ({private})")
        for block in await subject.metal.blocks()
        if block.get("address_family") == 4 and block.get("public") is False and block.get("network")
        for private in [ipaddress.ip_network(f"{block['network']}/{block['cidr']}", strict=False)]
        for name, network in ours.items()
        if network.overlaps(private) and not subject.is_ours(block)
    ]


async def _vlans(subject: Subject) -> list[Finding]:
    """VLAN ids in use: an id stands for one VLAN in a metro."""
    wanted = {network.vlan: network.name for network in subject.orders.networks if network.vlan is not None}
    if not wanted:
        return []
    metro = await subject.metal.metro_of(subject.orders.metro, subject.orders.facilities)
    return [
        error(
            f"the project has a VLAN {vlan['vxlan']} in {metro} that is not this stack's",
            f"set another number for platform.networks {wanted[vlan['vxlan']]}, or delete that VLAN",
        )
        for vlan in await subject.metal.networks()
        if vlan.get("vxlan") in wanted
        and (vlan.get("metro_code") or (vlan.get("metro") or {}).get("code")) in (None, metro)
        and not subject.is_ours(vlan)
    ]


async def _metros(subject: Subject) -> list[Finding]:
    """A reserved address belongs to one metro; machines in another metro cannot announce it."""
    orders = subject.orders
    if not orders.addresses or len(orders.facilities) < 2:
        return []
    known = await subject.metal.facilities()
    metros = {
        code: str(known[code]["metro"]["code"]) for code in orders.facilities if (known.get(code) or {}).get("metro")
    }
    if len(set(metros.values())) < 2:
        return []
    places = ", ".join(f"{code} is in {metro}" for code, metro in metros.items())
    return [
        error(
            f"addresses are reserved in one metro, and machines in another could not announce them: {places}",
            "list platform.facilities of one metro, or set platform.metro",
        )
    ]


async def _blocks(subject: Subject) -> list[Finding]:
    """Blocks beyond the project's quota are granted only after a review; the quota itself cannot be read."""
    ordered = [order.name for order in subject.orders.addresses]
    waiting = [block for block in await subject.metal.blocks() if block.get("state") == "pending"]
    if not ordered or not waiting:
        return []
    return [
        warning(
            f"{len(waiting)} of the project's blocks wait for a review, so its quota is used up:"
            f" {', '.join(ordered)} would wait as well",
            "ask Metal's support to raise the quota, or release blocks that nothing uses",
        )
    ]


def _overlap(first: str, second: str) -> Finding:
    return error(
        f"{first} overlaps {second}",
        "choose another range for the one that you can choose, or another project or metro for the machines",
    )
