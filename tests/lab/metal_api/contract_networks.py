"""What the contract test asks about networks, reserved hardware and the spot market."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.lab.metal_api.harness import IDENTITY, ORDER, PROJECT, World

Made = Callable[..., Awaitable[dict[str, Any]]]
_ORDER = {key: value for key, value in ORDER.items() if key != "metro"}

STATUSES: dict[str, tuple[tuple[str, str], ...]] = {
    "401": (),
    "404": (),
    "422": (
        ("POST", "/hardware-reservations/{id}/activate"),
        ("POST", "/hardware-reservations/{id}/move"),
        ("DELETE", "/spot-market-requests/{id}"),
    ),
}

ALSO = {"spot_price_max", "vnid"}
"""Numbers that are taken as texts as well, or the reverse, because packngo sends them so."""


BELOW: tuple[tuple[str, dict[str, str]], ...] = (
    ("/virtual-networks/{id}", {"id": "vlan"}),
    ("/ports/{id}/vlan-assignments/batches/{batch_id}", {"id": "bond", "batch_id": "vlan batch"}),
    ("/ports/{id}/vlan-assignments/{assignment_id}", {"id": "bond", "assignment_id": "vlan assignment"}),
    ("/ports/{id}", {"id": "bond"}),
    ("/metal-gateways/{id}", {"id": "gateway"}),
    ("/hardware-reservations/{id}", {"id": "reservation"}),
    ("/spot-market-requests/{id}", {"id": "spot request"}),
    ("/projects/{project_id}/", {"project_id": "project"}),
    ("/organizations/{organization_id}/", {"organization_id": "organization"}),
)

AT: dict[tuple[str, str], dict[str, str]] = {
    ("DELETE", "/virtual-networks/{id}"): {"id": "free vlan"},
    ("POST", "/ports/{id}/bond"): {"id": "interface"},
    ("POST", "/ports/{id}/disbond"): {"id": "interface"},
    ("POST", "/ports/{id}/convert/layer-2"): {"id": "other bond"},
    ("POST", "/ports/{id}/convert/layer-3"): {"id": "layer 2 bond"},
    ("POST", "/ports/{id}/unassign"): {"id": "bond"},
    ("POST", "/ports/{id}/native-vlan"): {"id": "layer 2 bond with vlans"},
    ("DELETE", "/ports/{id}/native-vlan"): {"id": "layer 2 bond with vlans"},
    ("POST", "/hardware-reservations/{id}/activate"): {"id": "spare"},
}

BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/projects/{id}/virtual-networks"): {"metro": "lb", "facility": None, "vxlan": None},
    ("PUT", "/virtual-networks/{id}"): {"description": "d"},
    ("POST", "/ports/{id}/assign"): {"vnid": "1999"},
    ("POST", "/ports/{id}/unassign"): {"vnid": "1000"},
    ("POST", "/ports/{id}/convert/layer-2"): {"vnid": "1999"},
    ("POST", "/ports/{id}/convert/layer-3"): {"request_ips": [{"address_family": 4, "public": False}]},
    ("POST", "/ports/{id}/vlan-assignments/batches"): {"vlan_assignments": [{"vlan": "1999", "state": "assigned"}]},
    ("POST", "/hardware-reservations/{id}/move"): {"project_id": IDENTITY.project_id},
    ("POST", "/hardware-reservations/{id}/activate"): {"description": "d"},
    ("POST", "/projects/{id}/spot-market-requests"): {
        "devices_min": 1,
        "devices_max": 2,
        "max_bid_price": 0.5,
        "metro": "lb",
        "facilities": None,
        "end_at": None,
        "instance_parameters": _ORDER,
    },
    ("POST", "/projects/{project_id}/metal-gateways"): {
        "virtual_network_id": "<free vlan>",
        "private_ipv4_subnet_size": 8,
        "ip_reservation_id": None,
    },
    ("POST", "/metal-gateways/{id}/ips"): {"address": "192.0.2.129/32", "next_hop": "10.64.0.2"},
}

QUERIES: dict[tuple[str, str], dict[str, str]] = {
    ("POST", "/ports/{id}/native-vlan"): {"vnid": "1001"},
    ("GET", "/market/spot/prices/history"): {
        "facility": "lab1",
        "plan": "c3.small.x86",
        "from": "1767200000",
        "until": "1767300000",
    },
}


_WORDS = ("virtual-networks", "ports", "gateways", "reservations", "spot")


def concerns(path: str) -> bool:
    """Whether a path is about what `furnish` makes."""
    return any(word in path for word in _WORDS)


async def furnish(lab: World, made: Made) -> dict[str, str]:
    """One of everything."""
    vlans = [await made(f"{PROJECT}/virtual-networks", metro="lb", vxlan=number) for number in (1000, 1001, 1500, 1999)]
    bonds = [(await lab.order(hostname=f"bond{number}"))["network_ports"] for number in range(4)]
    first, second, third, fourth = (ports[0]["href"] for ports in bonds)
    await made(f"{first}/assign", vnid="1000")
    batch = await made(f"{first}/vlan-assignments/batches", vlan_assignments=[{"vlan": "1001"}])
    lab.elapse(1)
    for bond in (third, fourth):
        await made(f"{bond}/convert/layer-2")
    for number in ("1000", "1001"):
        await made(f"{fourth}/assign", vnid=number)
    await made(f"{fourth}/native-vlan?vnid=1000")
    assignments = (await lab.client.get(f"{first}/vlan-assignments")).json()["vlan_assignments"]
    gateway = await made(f"{PROJECT}/metal-gateways", virtual_network_id=vlans[0]["id"], private_ipv4_subnet_size=8)
    sold = {"plan": "c3.small.x86", "facility": "lab1"}
    (reservation,) = (await made("/lab/hardware-reservations", **sold))["hardware_reservations"]
    (spare,) = (await made("/lab/hardware-reservations", **sold, spare=True))["hardware_reservations"]
    request = await made(f"{PROJECT}/spot-market-requests", **BODIES["POST", "/projects/{id}/spot-market-requests"])
    return {
        "vlan": vlans[0]["id"],
        "free vlan": vlans[2]["id"],
        "bond": bonds[0][0]["id"],
        "interface": bonds[0][1]["id"],
        "other bond": second.rpartition("/")[2],
        "layer 2 bond": third.rpartition("/")[2],
        "layer 2 bond with vlans": fourth.rpartition("/")[2],
        "vlan assignment": assignments[0]["id"],
        "vlan batch": batch["id"],
        "gateway": gateway["id"],
        "reservation": reservation["id"],
        "spare": spare["id"],
        "spot request": request["id"],
    }
