"""Values in the API's documents: how they are read, sent and compared where that takes more than a name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from zlib import crc32

from lab.plugins.values import Json

Document = Mapping[str, Json]
LAYER_2 = ("layer2-individual", "layer2-bonded")
_LAYER_3 = ("layer3", "hybrid", "hybrid-bonded")


def identity(document: Document) -> str:
    """The id of what is shown in full or only referred to."""
    return document.get("id") or str(document.get("href") or "").rstrip("/").rsplit("/", 1)[-1]


def reference(name: str) -> Callable[[Document], str]:
    """Reads the id of another that a document names."""
    return lambda document: identity(document.get(name) or {})


def set_order(members: Iterable[Json]) -> list[Json]:
    """Members in the order in which Terraform keeps sets; whole numbers are counted as such in whatever type."""

    def hashed(member: Json) -> str:
        text = str(int(member)) if isinstance(member, float) else str(member)
        return str(crc32(f"{text};".encode()))

    return sorted(members, key=hashed)


ADDRESS_TYPES: Mapping[str, Json] = {
    "public_ipv4": {"address_family": 4, "public": True},
    "private_ipv4": {"address_family": 4, "public": False},
    "public_ipv6": {"address_family": 6, "public": True},
}


def address_bodies(wishes: list[Document]) -> Json:
    return [{**ADDRESS_TYPES[it["type"]], **({"cidr": int(it["cidr"])} if it.get("cidr") else {})} for it in wishes]


def device_networks(document: Document) -> Json:
    """Public IPv4 first, then IPv6, then the rest; the sort keeps the API's order among equals."""
    found: list[Document] = document.get("ip_addresses") or []
    return sorted(found, key=lambda it: 1 if it.get("address_family") == 6 else 0 if it.get("public") else 2)


def access_address(family: int, *, public: bool) -> Callable[[Document], str]:
    """Reads the management address of a kind; the last one wins, as in the official plug-in."""

    def read(document: Document) -> str:
        found = [
            str(it.get("address"))
            for it in document.get("ip_addresses") or []
            if it.get("management") and it.get("address_family") == family and bool(it.get("public")) is public
        ]
        return found[-1] if found else ""

    return read


def deployed_facility(document: Document) -> Json:
    facility = (document.get("facility") or {}).get("code")
    return [facility] if facility else None


def same_facilities(state: Document, inputs: Document) -> bool:
    """A list of facilities that has the one the device is in."""
    deployed, wanted = state.get("deployedFacility"), inputs.get("facilities") or []
    return deployed in wanted or ("any" in wanted and bool(deployed))


def same_metro(state: Document, inputs: Document) -> bool:
    """The API writes metros in small letters; one that is only given or only told for something of a facility."""
    old, new = str(state.get("metro") or "").lower(), str(inputs.get("metro") or "").lower()
    return old == new or (bool(state.get("facility")) and not (old and new))


def same_reservation(state: Document, inputs: Document) -> bool:
    given = inputs.get("hardwareReservationId")
    return bool(given) and given == state.get("deployedHardwareReservationId")


def same_bgp(state: Document, inputs: Document) -> bool:
    """The API fills in a status and a limit."""
    old, new = state.get("bgpConfig"), inputs.get("bgpConfig")
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return False
    members: Document = new
    return all(old.get(name) == value for name, value in members.items() if value and not name.startswith("__"))  # pyright: ignore[reportUnknownMemberType]


def same_organization(state: Document, inputs: Document) -> bool:
    return str(state.get("organizationId")).lower() == str(inputs.get("organizationId")).lower()


def block_size(document: Document) -> int:
    return 1 << (32 - int(document["cidr"]))


def subnet_size(document: Document) -> int:
    return block_size(document["ip_reservation"])


def layer_2(document: Document) -> bool | None:
    kind = document.get("network_type")
    return kind in LAYER_2 if kind in LAYER_2 + _LAYER_3 else None


def port_networks(name: str, default: Json) -> Callable[[Document], Json]:
    return lambda document: set_order(it.get(name) or default for it in document.get("virtual_networks") or [])


_SAME_PRICE_RATIO = 0.02
"""As officially: a maximum price is another one only from fifty times the old one on."""


def same_price(state: Document, inputs: Document) -> bool:
    old, new = state.get("maxBidPrice"), inputs.get("maxBidPrice")
    return isinstance(old, float) and isinstance(new, float) and new > 0 and old / new > _SAME_PRICE_RATIO


def whole_cents(price: float) -> float:
    """A price as officially asked for: in whole cents, halves upwards."""
    return math.floor(price * 100 + 0.5) / 100


def spot_facilities(document: Document) -> Json:
    return [facility.get("code") or "" for facility in document.get("facilities") or []]


def ssh_keys(document: Document) -> Json:
    """The ids of a device's SSH keys."""
    return [identity(key) for key in document.get("ssh_keys") or []]


def sorted_tags(document: Document) -> Json:
    """Tags in the order of a set."""
    return set_order(document.get("tags") or [])


def cidr_notation(document: Document) -> str:
    """A block as `network/length`."""
    return f"{document.get('network') or ''}/{document.get('cidr') or 0}"
