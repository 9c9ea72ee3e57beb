"""What an order of a device asks for besides the machine: a reserved one, one of the spot market, an end, its networks.

The API's own words for what it refuses here are not written down anywhere we know of; these are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.metal_api.body import Body
from lab.metal_api.catalog import capacity
from lab.metal_api.catalog.models import ON_DEMAND, SPOT_MARKET, Facility, Plan
from lab.metal_api.exceptions import NotImplementedInLab
from lab.metal_api.hardware_reservations.models import choose
from lab.metal_api.ips.addresses import PREFIX
from lab.metal_api.sources import timestamp
from lab.metal_api.spot_market.prices import check_bid
from lab.metal_api.state import Account

LARGEST = 28
"""The shortest prefix of a network that a device can be ordered with."""


def termination_time(account: Account, body: Body) -> str | None:
    """When the device is to end: in UTC where no offset is given."""
    moment = body.moment("termination_time", assume_utc=True)
    if moment and moment <= account.clock.now():
        body.problems.append("Termination time must be in the future")
    return timestamp(moment) if moment else None


def agree(
    account: Account, project_id: str, body: Body, *, plan: Plan, places: Sequence[Facility], where: str
) -> dict[str, Any]:
    """Facility, reservation and spot price of an order that is valid otherwise; Unprocessable if it cannot be met."""
    reservation, spot = body.text("hardware_reservation_id"), body.flag("spot_instance")
    if reservation and spot:
        body.problems.append("Spot instances cannot be on a hardware reservation")
    if spot and body.document.get("spot_price_max") is None:
        body.problems.append("Spot price max can't be blank")
    wanted = SPOT_MARKET if spot else ON_DEMAND
    if not reservation and wanted not in plan.deployment_types:
        body.problems.append(f"{plan.slug} is not available {wanted.replace('_', ' ')}")
    body.check()
    if reservation:
        chosen = choose(account, project_id, reservation, plan=plan.slug, facilities=[each.code for each in places])
        return {"facility": chosen.facility, "hardware_reservation_id": chosen.id}
    facility = capacity.choose(account, places, plan)
    if facility is None:
        raise capacity.refuse(plan, where)
    if not spot:
        return {"facility": facility.code}
    bid = check_bid(account, facility.code, plan.slug, body.document["spot_price_max"])
    return {"facility": facility.code, "spot_instance": True, "spot_price_max": bid}


def prefixes(body: Body) -> tuple[int, int]:
    """Of the public and of the private network of a device. What the lab's machines cannot have is refused."""
    public, private = body.integer("public_ipv4_subnet_size"), body.integer("private_ipv4_subnet_size")
    entries = body.objects("ip_addresses")
    for entry in entries or []:
        if entry.get("address_family") != 4:
            raise NotImplementedInLab("device addresses other than IPv4")
        if entry.get("ip_reservations"):
            raise NotImplementedInLab("device addresses out of IP reservations")
    if entries:
        given = [Body(entry, body.problems) for entry in entries]
        kinds = [entry.document.get("public", True) for entry in given]
        if False not in kinds:
            body.problems.append("Private IPv4 address is required")
        elif True not in kinds:
            raise NotImplementedInLab("devices without a public IPv4 address")
        for entry, is_public in zip(given, kinds, strict=True):
            prefix = entry.integer("cidr")
            public, private = (prefix or public, private) if is_public else (public, prefix or private)
    for name, prefix in (("Public", public), ("Private", private)):
        if prefix is not None and not LARGEST <= prefix <= PREFIX:
            body.problems.append(f"{name} ipv4 subnet size must be from {LARGEST} to {PREFIX}")
    return public or PREFIX, private or PREFIX
