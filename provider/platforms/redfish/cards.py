"""Network cards, as BMCs report them.

Schema: EthernetInterface of the System; NetworkAdapter, NetworkDeviceFunction and Port of its Chassis. BMCs differ:
some list only cards that the firmware has started in the System; others list all cards only as the chassis' adapters.
Adapters are read only if a wanted card is not in the System, because they take many requests.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from metal_ipi.provider.inventory.facts import Card, Link
from metal_ipi.provider.platforms.redfish.documents import Document, Documents, Untold, member, or_none

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_LINKS: dict[str, Link] = {"LinkUp": "up", "Up": "up", "LinkDown": "down", "Down": "down", "NoLink": "down"}


def cards(documents: Documents, system: Document, wanted: Collection[str] = ()) -> Sequence[Card]:
    """All reported cards. Adapters are read if a MAC address of `wanted` is not among the System's cards.

    Raises Untold, also if a wanted card was not found before the limit of requests was reached.
    """
    found: dict[str, Card] = {}
    missing = {mac.lower() for mac in wanted}
    own = or_none(lambda: documents.listed(system, "EthernetInterfaces"))
    for interface in own or ():
        for key in ("PermanentMACAddress", "MACAddress"):
            _note(found, interface.get(key), interface.get("LinkStatus"))
    if missing - set(found):
        for mac, link in or_none(lambda: list(_of_adapters(documents, system))) or ():
            _note(found, mac, link)
    if (own is None and not found) or (documents.over and missing - set(found)):
        raise Untold
    return list(found.values())


def _of_adapters(documents: Documents, system: Document) -> Iterator[tuple[Any, Any]]:
    for chassis in documents.related(system, "Chassis"):
        for adapter in or_none(lambda: documents.listed(chassis, "NetworkAdapters")) or ():  # noqa: B023
            for function in or_none(lambda: documents.listed(adapter, "NetworkDeviceFunctions")) or ():  # noqa: B023
                ethernet = member(function, "Ethernet")
                for key in ("PermanentMACAddress", "MACAddress"):
                    yield ethernet.get(key), None
            for port in _ports(documents, adapter):
                told_of = member(port, "Ethernet").get("AssociatedMACAddresses") or port.get(
                    "AssociatedNetworkAddresses"
                )
                for mac in told_of if isinstance(told_of, list) else ():
                    yield mac, port.get("LinkStatus")


def _ports(documents: Documents, adapter: Document) -> Sequence[Document]:
    """The adapter's ports; they were called NetworkPorts before release 2021.1 of the schemas."""
    for name in ("Ports", "NetworkPorts"):
        if name in adapter:
            return or_none(lambda: documents.listed(adapter, name)) or ()  # noqa: B023
    return ()


def _note(found: dict[str, Card], told_mac: Any, told_link: Any) -> None:
    mac = str(told_mac or "").strip().lower().replace("-", ":")
    if _MAC.fullmatch(mac) and set(mac) - {"0", ":"}:
        link = _LINKS.get(str(told_link))
        before = found.get(mac)
        found[mac] = Card(mac=mac, link=link or (before.link if before else None))
