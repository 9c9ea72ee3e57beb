"""Pure functions between the API's device and the resource's properties."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

from lab.plugins.values import Json

CARRIED = (
    "__meta",
    "description",
    "userData",
    "customData",
    "ipAddresses",
    "projectSshKeyIds",
    "reinstall",
    "storage",
    "terminationTime",
    "forceDetachVolumes",
    "waitForReservationDeprovision",
)
"""What the API does not tell, or not as it was given: kept as it was."""

_BODY = {
    "hostname": "hostname",
    "description": "description",
    "plan": "plan",
    "operatingSystem": "operating_system",
    "billingCycle": "billing_cycle",
    "metro": "metro",
    "facilities": "facility",
    "userData": "userdata",
    "customData": "customdata",
    "ipxeScriptUrl": "ipxe_script_url",
    "alwaysPxe": "always_pxe",
    "hardwareReservationId": "hardware_reservation_id",
    "terminationTime": "termination_time",
    "projectSshKeyIds": "project_ssh_keys",
    "projectId": "project_id",
}

_CHANGEABLE = ("description", "userData", "customData", "hostname", "tags", "ipxeScriptUrl", "alwaysPxe")

_ADDRESS_TYPES: dict[str, dict[str, Json]] = {
    "public_ipv4": {"address_family": 4, "public": True},
    "private_ipv4": {"address_family": 4, "public": False},
    "public_ipv6": {"address_family": 6, "public": True},
}


def order_body(inputs: Mapping[str, Json]) -> dict[str, Json]:
    """The request for a new device; empty values are left out, as the official plug-in does."""
    body: dict[str, Json] = {theirs: inputs[ours] for ours, theirs in _BODY.items() if inputs.get(ours)}
    if "metro" in body:
        body["metro"] = str(body["metro"]).lower()
    body["tags"] = inputs.get("tags") or []
    if inputs.get("storage"):
        body["storage"] = json.loads(inputs["storage"])
    if inputs.get("ipAddresses"):
        body["ip_addresses"] = [_address_body(wish) for wish in inputs["ipAddresses"]]
    return body


def _address_body(wish: Mapping[str, Json]) -> dict[str, Json]:
    body = dict(_ADDRESS_TYPES[wish["type"]])
    if wish.get("cidr"):
        body["cidr"] = int(wish["cidr"])
    if wish.get("reservationIds"):
        body["ip_reservations"] = wish["reservationIds"]
    return body


def change_body(olds: Mapping[str, Json], news: Mapping[str, Json]) -> dict[str, Json]:
    """The request that turns one into the other; what is no longer given is set to nothing, a hostname excepted."""
    body: dict[str, Json] = {}
    for name in _CHANGEABLE:
        old, new = olds.get(name), news.get(name)
        if (old or None) != (new or None) and not (name == "hostname" and not new):
            nothing: Json = {"tags": [], "alwaysPxe": False}.get(name, "")
            body["tags" if name == "tags" else _BODY[name]] = new or nothing
    return body


def device_state(document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of a device. `known` are its inputs or its state before, for what the API does not tell."""
    addresses: list[dict[str, Json]] = document.get("ip_addresses") or []
    facility = part(document, "facility", "code")
    state: dict[str, Json] = {name: known[name] for name in CARRIED if known.get(name) is not None}
    state.update(
        id=document["id"],
        hostname=document.get("hostname") or "",
        plan=part(document, "plan", "slug"),
        operatingSystem=part(document, "operating_system", "slug"),
        projectId=part(document, "project", "id")
        or last_part(part(document, "project", "href"))
        or known.get("projectId"),
        deployedFacility=facility,
        facilities=[facility] if facility else known.get("facilities") or [],
        metro=part(document, "metro", "code") or known.get("metro"),
        state=document.get("state") or "",
        billingCycle=document.get("billing_cycle") or "",
        locked=bool(document.get("locked")),
        created=document.get("created_at") or "",
        updated=document.get("updated_at") or "",
        ipxeScriptUrl=document.get("ipxe_script_url") or "",
        alwaysPxe=bool(document.get("always_pxe")),
        rootPassword=document.get("root_password") or "",
        tags=document.get("tags") or [],
        sshKeyIds=[last_part(key.get("href")) or key.get("id") for key in document.get("ssh_keys") or []],
        networks=sorted((_network(entry) for entry in addresses), key=_network_rank),
        ports=[_port(entry) for entry in document.get("network_ports") or []],
        networkType=network_type(document),
        accessPublicIpv4=_access(addresses, 4, public=True),
        accessPrivateIpv4=_access(addresses, 4, public=False),
        accessPublicIpv6=_access(addresses, 6, public=None),
    )
    if state.get("storage"):
        state["storage"] = normal_json(state["storage"])
    state.setdefault("terminationTime", "")
    state.setdefault("forceDetachVolumes", False)
    state.setdefault("waitForReservationDeprovision", False)
    reservation = part(document, "hardware_reservation", "id") or last_part(
        part(document, "hardware_reservation", "href")
    )
    if reservation:
        state["deployedHardwareReservationId"] = reservation
    if known.get("hardwareReservationId"):
        state["hardwareReservationId"] = known["hardwareReservationId"]
    return {name: value for name, value in state.items() if value is not None}


def network_type(document: Mapping[str, Json]) -> str:
    """layer3, hybrid, layer2-bonded or layer2-individual, derived from bonds and addresses as the API's client does."""
    fixed = {"baremetal_0": "layer3", "baremetal_1": "layer3", "baremetal_1e": "hybrid"}
    plan = part(document, "plan", "slug")
    if plan in fixed:
        return fixed[plan]
    ports: list[dict[str, Json]] = document.get("network_ports") or []
    if not _all_bonded(ports, "NetworkBondPort"):
        return "layer2-individual"
    if not _all_bonded(ports, "NetworkPort"):
        return "hybrid"
    managed = any(entry.get("management") for entry in document.get("ip_addresses") or [])
    return "layer3" if managed else "layer2-bonded"


def set_order(members: Iterable[Json]) -> list[Json]:
    """Members in the order in which Terraform keeps sets; whole numbers are counted as such in whatever type."""

    def hashed(member: Json) -> str:
        text = str(int(member)) if isinstance(member, float) else str(member)
        return str(crc32(f"{text};".encode()))

    return sorted(members, key=hashed)


def normal_json(text: str) -> str:
    """JSON in one spelling."""
    return json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True)


def address_state(document: Mapping[str, Json]) -> dict[str, Json]:
    """What a block of addresses and an attachment have in common."""
    return {
        "id": document["id"],
        "address": document.get("address") or "",
        "addressFamily": document.get("address_family") or 0,
        "cidr": document.get("cidr") or 0,
        "cidrNotation": f"{document.get('network') or ''}/{document.get('cidr') or 0}",
        "gateway": document.get("gateway") or "",
        "global": bool(document.get("global_ip")),
        "manageable": bool(document.get("manageable")),
        "management": bool(document.get("management")),
        "netmask": document.get("netmask") or "",
        "network": document.get("network") or "",
        "public": bool(document.get("public")),
    }


def block_state(document: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of a block of addresses. An IPv6 block is counted in /64s, as officially."""
    state = address_state(document)
    family, public = state["addressFamily"], state["public"]
    kind = "private" if not public else "global" if state["global"] else "public"
    state.update(
        type=f"{kind}_ipv{family}",
        quantity=1 << max(0, (32 if family == 4 else 64) - int(state["cidr"])),
        projectId=last_part(part(document, "project", "href")) or part(document, "project", "id"),
        facility=part(document, "facility", "code"),
        metro=str(part(document, "metro", "code") or "").lower() or None,
        description=document.get("details") or None,
        tags=set_order(document.get("tags") or []),
    )
    return {name: value for name, value in state.items() if value is not None}


def session_state(document: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of a BGP session."""
    return {
        "id": document["id"],
        "deviceId": part(document, "device", "id") or last_part(part(document, "device", "href")) or "",
        "addressFamily": document.get("address_family") or "",
        "defaultRoute": bool(document.get("default_route")),
        "status": document.get("status") or "",
    }


def key_state(document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of an SSH key."""
    owner = document.get("owner") or document.get("entity") or {}
    href = str(owner.get("href") or "")
    state: dict[str, Json] = {
        "id": document["id"],
        "name": document.get("label") or "",
        "publicKey": document.get("key") or "",
        "fingerprint": document.get("fingerprint") or "",
        "created": document.get("created_at") or "",
        "updated": document.get("updated_at") or "",
        "ownerId": last_part(href) or "",
    }
    if "/projects/" in href:
        state["projectId"] = state["ownerId"]
    elif known.get("projectId"):
        state["projectId"] = known["projectId"]
    return state


def project_state(document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
    """The properties of a project, without its BGP configuration."""
    payment = last_part(part(document, "payment_method", "href")) or known.get("paymentMethodId")
    return {
        "id": document["id"],
        "name": document.get("name") or "",
        "organizationId": last_part(part(document, "organization", "href")) or "",
        "created": document.get("created_at") or "",
        "updated": document.get("updated_at") or "",
        "backendTransfer": bool(document.get("backend_transfer_enabled")),
        **({"paymentMethodId": payment} if payment else {}),
    }


def bgp_config_state(document: Mapping[str, Json]) -> dict[str, Json]:
    """A project's BGP configuration."""
    return {
        "deploymentType": document.get("deployment_type") or "",
        "asn": document.get("asn") or 0,
        "md5": document.get("md5") or "",
        "status": document.get("status") or "",
        "maxPrefix": document.get("max_prefix") or 0,
    }


def _all_bonded(ports: list[dict[str, Json]], kind: str) -> bool:
    flags = [bool((port.get("data") or {}).get("bonded")) for port in ports if port.get("type") == kind]
    return bool(flags) and all(flags)


def _network(entry: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "address": entry.get("address") or "",
        "gateway": entry.get("gateway") or "",
        "family": entry.get("address_family") or 0,
        "cidr": entry.get("cidr") or 0,
        "public": bool(entry.get("public")),
    }


def _network_rank(network: Mapping[str, Json]) -> int:
    """Public IPv4 first, then IPv6, then the rest; the sort keeps the API's order among equals."""
    if network["family"] == 6:
        return 1
    return 0 if network["public"] else 3


def _port(entry: Mapping[str, Json]) -> dict[str, Json]:
    data: Mapping[str, Any] = entry.get("data") or {}
    return {
        "name": entry.get("name") or "",
        "id": entry.get("id") or "",
        "type": entry.get("type") or "",
        "mac": data.get("mac") or "",
        "bonded": bool(data.get("bonded")),
    }


def _access(addresses: list[dict[str, Json]], family: int, *, public: bool | None) -> str:
    """The management address of a kind; the last one wins, as in the official plug-in."""
    found = [
        str(entry.get("address"))
        for entry in addresses
        if entry.get("management")
        and entry.get("address_family") == family
        and (public is None or bool(entry.get("public")) is public)
    ]
    return found[-1] if found else ""


def part(document: Mapping[str, Json], of: str, name: str) -> Json:
    """A member of an object within; None where there is no such object."""
    inner = document.get(of)
    return inner.get(name) if isinstance(inner, Mapping) else None


def last_part(href: Json) -> str | None:
    """The identifier at the end of a reference."""
    return str(href).rstrip("/").rsplit("/", 1)[-1] if href else None
