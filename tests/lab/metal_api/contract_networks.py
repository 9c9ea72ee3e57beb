"""What the contract test asks about networks, reserved hardware, the spot market and interconnections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.lab.metal_api.harness import IDENTITY, ORDER, PROJECT, World

Made = Callable[..., Awaitable[dict[str, Any]]]
_ORDER = {key: value for key, value in ORDER.items() if key != "metro"}

STATUSES: dict[str, tuple[tuple[str, str], ...]] = {
    "401": (),
    "404": (("POST", "/projects/{project_id}/connections"),),
    "422": (
        ("POST", "/hardware-reservations/{id}/activate"),
        ("POST", "/hardware-reservations/{id}/move"),
        ("POST", "/connections/{connection_id}/ports/{port_id}/virtual-circuits"),
        ("PUT", "/connections/{connection_id}"),
        ("PUT", "/virtual-circuits/{id}"),
        ("DELETE", "/virtual-circuits/{id}"),
        ("DELETE", "/spot-market-requests/{id}"),
    ),
}

_OF_VRFS = {
    *("vrf", "peer_asn", "md5", "subnet", "subnet_ipv6"),
    *("metal_ip", "metal_ipv6", "customer_ip", "customer_ipv6"),
}
VARIANTS: dict[tuple[str, str], set[str]] = {
    ("POST", "/projects/{project_id}/connections"): {"vrfs", "fabric_provider"},
    ("POST", "/organizations/{organization_id}/connections"): {"vrfs", "fabric_provider"},
    ("POST", "/connections/{connection_id}/ports/{port_id}/virtual-circuits"): _OF_VRFS,
    ("PUT", "/virtual-circuits/{id}"): _OF_VRFS,
}
"""Fields of variants of bodies that the lab answers 501 to."""

ALSO = {"spot_price_max", "speed", "vnid"}
"""Numbers that are taken as texts as well, or the reverse, because packngo sends them so."""


def mend(schemas: dict[str, Any]) -> None:
    """Two variants of which every field is optional: any body is both, so none is one of them."""
    schemas["VirtualCircuitUpdateInput"] = {"$ref": "#/components/schemas/VlanVirtualCircuitUpdateInput"}


BELOW: tuple[tuple[str, dict[str, str]], ...] = (
    ("/virtual-networks/{id}", {"id": "vlan"}),
    ("/ports/{id}/vlan-assignments/batches/{batch_id}", {"id": "bond", "batch_id": "vlan batch"}),
    ("/ports/{id}/vlan-assignments/{assignment_id}", {"id": "bond", "assignment_id": "vlan assignment"}),
    ("/ports/{id}", {"id": "bond"}),
    ("/metal-gateways/{id}", {"id": "gateway"}),
    ("/hardware-reservations/{id}", {"id": "reservation"}),
    ("/spot-market-requests/{id}", {"id": "spot request"}),
    ("/connections/{connection_id}/ports/{port_id}", {"connection_id": "connection", "port_id": "connection port"}),
    ("/connections/{connection_id}/ports/{id}", {"connection_id": "connection", "id": "connection port"}),
    ("/connections/{connection_id}", {"connection_id": "connection"}),
    ("/virtual-circuits/{id}", {"id": "circuit"}),
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
    ("POST", "/projects/{project_id}/connections"): {
        "name": "c",
        "metro": "lb",
        "type": "shared",
        "redundancy": "primary",
        "service_token_type": "z_side",
        "vlans": [1000],
        "speed": None,
        "project": None,
        "contact_email": "lab@facility.test",
    },
    ("POST", "/organizations/{organization_id}/connections"): {
        "name": "c",
        "metro": "lb",
        "type": "dedicated",
        "redundancy": "redundant",
        "speed": "10gbps",
        "mode": "standard",
        "facility_id": None,
        "contact_email": "lab@facility.test",
    },
    ("PUT", "/connections/{connection_id}"): {"name": "c", "mode": "standard"},
    ("POST", "/connections/{connection_id}/ports/{port_id}/virtual-circuits"): {
        "project_id": IDENTITY.project_id,
        "nni_vlan": 200,
        "speed": "1gbps",
        "vnid": None,
    },
    ("PUT", "/virtual-circuits/{id}"): {"name": "v", "speed": "1gbps", "vnid": ""},
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


_WORDS = ("virtual-networks", "ports", "gateways", "reservations", "spot", "connections", "circuits")


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
    wanted = {"name": "c", "metro": "lb", "type": "dedicated", "redundancy": "primary"}
    connection = await made(f"/metal/v1/organizations/{IDENTITY.organization_id}/connections", **wanted)
    lab.elapse(1)
    circuits = f"/metal/v1/connections/{connection['id']}/ports/{connection['ports'][0]['id']}/virtual-circuits"
    circuit = await made(circuits, project_id=IDENTITY.project_id, nni_vlan=100, vnid="1000")
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
        "connection": connection["id"],
        "connection port": connection["ports"][0]["id"],
        "circuit": circuit["id"],
    }
