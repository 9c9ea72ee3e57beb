"""Networks of several cards, bonds and VLANs, as nmstatectl's profiles describe them to a simulated machine.

No frame is sent. Compared is whether the cards are there, what is on what, and (by `Kernel`) whether the machine would
have the address that the network knows it by. Whatever else a profile says ends the boot, as in `keyfile`.
"""

from __future__ import annotations

import ipaddress
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.machines.base import Address
from lab.machines.simulated.keyfile import KeyfileError, values_of

_ANY = r"\d+"
_KNOWN = {
    "connection": {
        **dict.fromkeys(("id", "uuid", "interface-name", "master"), r".+"),
        **{"type": "802-3-ethernet|ethernet|bond|vlan", "slave-type": "bond", "autoconnect": "true"},
        **{"autoconnect-slaves": "-?1", "wait-device-timeout": _ANY},
    },
    "bond": {"mode": "active-backup", "miimon": _ANY, "primary": ".+"},
    "vlan": {"id": _ANY, "parent": ".+", "flags": _ANY},
    "ethernet": {"mac-address": ".+", "cloned-mac-address": ".+", "mtu": _ANY},
    "ipv4": {
        **{"method": "manual|disabled", r"address\d": ".+", "dns": ".+", "dns-priority": _ANY, "dhcp-timeout": _ANY},
        **{r"route\d": ".+", r"route\d_options": "table=254"},
    },
    "ipv6": {
        **{"method": "manual|disabled", "addr-gen-mode": _ANY, "dhcp-timeout": _ANY, r"address\d": ".+"},
        **{r"route\d": ".+", r"route\d_options": "table=254"},
    },
}


@dataclass(kw_only=True)
class Link:
    """An interface as its profile has it."""

    name: str
    mac: str = ""
    """The MAC address of a card."""
    mode: str = ""
    """The mode of a bond."""
    ports: list[str] = field(default_factory=list[str])
    vlan: int = 0
    parent: str = ""
    mtu: int = 1500
    addresses: list[ipaddress.IPv4Interface] = field(default_factory=list[ipaddress.IPv4Interface])
    gateway: str = ""

    @property
    def told(self) -> str:
        """A description for the console."""
        what = f" ({self.mode} of {', '.join(self.ports)})" if self.mode else ""
        what = f" (VLAN {self.vlan} on {self.parent})" if self.vlan else what
        return f"{self.name}{what}: {', '.join(map(str, self.addresses)) or 'no address'}" + (
            f" via {self.gateway}" if self.gateway else ""
        )


def is_one(paths: Sequence[Path]) -> bool:
    """Whether profiles are nmstatectl's."""
    return any("\nautoconnect-slaves=" in path.read_text() for path in paths)


def links(paths: Iterable[Path], cards: Mapping[str, str]) -> dict[str, Link]:
    """What profiles make of a machine's cards (MAC addresses by name). Raises KeyfileError."""
    profiles = [_read(path) for path in paths]
    names = {mac: name for name, mac in cards.items()}
    found: dict[str, Link] = {}
    by_uuid: dict[str, str] = {}
    for file, values in profiles:
        mac = values.get("ethernet.mac-address")
        name = values.get("connection.interface-name") or names.get(mac or "")
        if name is None:
            raise KeyfileError(f"{file}: no card has the MAC address {mac}; there are {', '.join(names)}")
        is_card = values["connection.type"].endswith("ethernet")
        if is_card and name not in cards:
            raise KeyfileError(f"{file}: no card is called {name}; there are {', '.join(cards)}")
        by_uuid[values["connection.uuid"]] = name
        found[name] = Link(
            name=name,
            mac=cards[name] if is_card else "",
            mode=values.get("bond.mode", ""),
            vlan=int(values.get("vlan.id", 0)),
            parent=values.get("vlan.parent", ""),
            mtu=int(values.get("ethernet.mtu", 1500)),
            addresses=[
                ipaddress.IPv4Interface(value) for key, value in values.items() if key.startswith("ipv4.address")
            ],
            gateway=next((value.split(",")[1] for value in values.values() if value.startswith("0.0.0.0/0,")), ""),
        )
    for file, values in profiles:
        master = values.get("connection.master")
        if master is not None:
            if master not in found or not found[master].mode:
                raise KeyfileError(f"{file}: there is no bond {master}")
            found[master].ports.append(values.get("connection.interface-name") or names[values["ethernet.mac-address"]])
    for link in found.values():
        link.parent = by_uuid.get(link.parent, link.parent)
        if link.vlan and link.parent not in found:
            raise KeyfileError(f"{link.name}: there is no {link.parent} that it could be on")
        if link.mode and not link.ports:
            raise KeyfileError(f"{link.name}: the bond has no port")
        if link.vlan and link.mtu > found[link.parent].mtu:
            raise KeyfileError(f"{link.name}: its frames are larger than those of {link.parent}")
    return found


def populate(root: Path, cards: Mapping[str, str], found: Mapping[str, Link]) -> None:
    """Write the kernel's files about it below /sys and /proc; ports of a bond have the bond's MAC address, and also
    show their own."""
    sys = root / "sys/class/net"
    shutil.rmtree(sys, ignore_errors=True)
    bonds = {port: link for link in found.values() for port in link.ports}
    for name, mac in cards.items():
        bond = bonds.get(name)
        files = {"device/vendor": "0x1af4", "address": mac if bond is None else cards[bond.ports[0]]}
        files |= {"bonding_slave/perm_hwaddr": mac} if bond is not None else {}
        _write(sys / name, files)
    for link in found.values():
        files = {"mtu": str(link.mtu)}
        if link.mode:
            files |= {"bonding/mode": f"{link.mode} 1", "bonding/slaves": " ".join(link.ports)}
            files["address"] = cards[link.ports[0]]
        _write(sys / link.name, files)
        if link.vlan:
            text = f"{link.name}  VID: {link.vlan}\t REORDER_HDR: 1  dev->priv_flags: 1021\nDevice: {link.parent}"
            _write(root / "proc/net/vlan", {link.name: text})


def populate_ipv6(root: Path, own: Address | None) -> None:
    """What the kernel tells below /proc/net of the address of its first card, and of the way out."""
    if own is None:
        return
    address, gateway = (ipaddress.IPv6Address(each).packed.hex() for each in (own.address, own.gateway))
    zeros = "0" * 32
    route = f"{zeros} 00 {zeros} 00 {gateway} 00000064 00000001 00000000 00000003     eth0"
    _write(root / "proc/net", {"if_inet6": f"{address} 02 {own.prefix:02x} 00 80     eth0", "ipv6_route": route})


def _write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text + "\n")


def _read(path: Path) -> tuple[str, dict[str, str]]:
    values = values_of(path)
    for name, value in values.items():
        section, _, key = name.partition(".")
        known = _KNOWN.get(section, {})
        form = next((known[form] for form in known if re.fullmatch(form, key)), None)
        if form is None or not re.fullmatch(form, value):
            raise KeyfileError(f"{path.name}: the lab's nodes do not know {name}={value}")
    if missing := sorted({"connection.type", "connection.uuid"} - values.keys()):
        raise KeyfileError(f"{path.name}: it lacks {', '.join(missing)}")
    return path.name, values
