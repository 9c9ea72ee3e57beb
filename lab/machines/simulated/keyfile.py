"""NetworkManager's profiles, as far as the lab's nodes obey them: one interface with static addresses.

The same as files/initramfs/init of the node image obeys. Whatever else a profile says ends the boot, so that nothing
passes here that a real node would read in another way. Bonds and VLANs are left alone, and it is said: machines of the
lab have one network card.
"""

from __future__ import annotations

import configparser
import ipaddress
import stat
from dataclasses import dataclass
from pathlib import Path

_ANY = {"connection.id", "connection.uuid", "connection.wait-device-timeout"}
_FIXED = {"ipv4.method": "manual", "ipv4.may-fail": "false"}
_NEEDED = {"connection.interface-name", "ipv4.address1", "ipv4.gateway", "ipv4.dns", "ipv6.method"}
_IPV6 = {
    "disabled": {"ipv6.method"},
    "manual": {"ipv6.method", "ipv6.address1", "ipv6.gateway", "ipv6.may-fail"},
}
"""All keys of IPv6, by its method."""
_KNOWN = {"connection.type", *_ANY, *_FIXED, *_NEEDED, *_IPV6["manual"]}


class KeyfileError(Exception):
    """A profile that the lab's nodes do not obey; the text says what is in the way."""


@dataclass(frozen=True, kw_only=True)
class Static:
    """What a profile gives an interface."""

    interface: str
    address: ipaddress.IPv4Interface
    gateway: ipaddress.IPv4Address
    nameservers: tuple[ipaddress.IPv4Address, ...]


def values_of(path: Path) -> dict[str, str]:
    """The values of a profile, by section and key (`ipv4.method`). Raises KeyfileError."""
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise KeyfileError(f"{path.name}: others than root can read it: NetworkManager ignores it")
    parser = configparser.RawConfigParser(delimiters=("=",), strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[method-assign,assignment]  # keys are as they are written
    try:
        parser.read_string(path.read_text())
    except configparser.Error as error:
        raise KeyfileError(f"{path.name}: {error}") from error
    return {f"{section}.{key}": value for section in parser.sections() for key, value in parser.items(section)}


def read(path: Path) -> Static | None:
    """What a profile says; None of a bond, its port or a VLAN. Raises KeyfileError."""
    values = values_of(path)
    kind = values.get("connection.type")
    if kind in ("bond", "vlan") or "connection.master" in values:
        return None
    if kind != "ethernet":
        raise KeyfileError(f"{path.name}: the lab's nodes know no connection of type {kind}")
    for key, value in values.items():
        if key not in _KNOWN or _FIXED.get(key, value) != value:
            raise KeyfileError(f"{path.name}: the lab's nodes do not know {key}={value}")
    if missing := sorted({*_NEEDED, *_FIXED} - values.keys()):
        raise KeyfileError(f"{path.name}: it lacks {', '.join(missing)}")
    method = values["ipv6.method"]
    if {key for key in values if key.startswith("ipv6.")} != _IPV6.get(method):
        raise KeyfileError(
            f"{path.name}: the lab's nodes do not know ipv6.method={method} with what else is said of IPv6"
        )
    try:
        return Static(
            interface=values["connection.interface-name"],
            address=ipaddress.IPv4Interface(values["ipv4.address1"]),
            gateway=ipaddress.IPv4Address(values["ipv4.gateway"]),
            nameservers=tuple(ipaddress.IPv4Address(each) for each in values["ipv4.dns"].split(";") if each),
        )
    except ValueError as error:
        raise KeyfileError(f"{path.name}: {error}") from error
