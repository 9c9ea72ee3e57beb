"""The part of NMState with which other settings are compared; nmstatectl checks the rest.

nmstate 2.2.62 itself accepts a VLAN with any id, on an interface that does not exist, and with a larger MTU than that.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyAddress,
    IPvAnyNetwork,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from metal_ipi.stacks.problems import Found

IpInterface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
DEFAULT_MTU = 1500
SECRETS = ("802.1x", "libreswan", "macsec")
"""Parts of an interface that contain keys."""
_DEFAULT = ("0.0.0.0/0", "::/0")
_CARDS = ("ethernet", "infiniband", "unknown")
COVERED = ("ethernet", "bond", "vlan", "linux-bridge")
"""Types of interfaces whose profiles are known to find their cards by MAC address. Without a type it is an Ethernet
card."""
_MODES = ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")
_MAIN_TABLES = (None, 0, 254)


class _Part(BaseModel):
    """A part of NMState. Fields that are not declared here are ignored; nmstatectl checks them."""

    model_config = ConfigDict(
        alias_generator=lambda name: name.replace("_", "-"), extra="ignore", frozen=True, hide_input_in_errors=True
    )


class _Address(_Part):
    ip: IPvAnyAddress
    prefix_length: int = Field(ge=0, le=128)

    @field_validator("prefix_length")
    @classmethod
    def _fits(cls, value: int, info: ValidationInfo) -> int:
        ip: ipaddress.IPv4Address | ipaddress.IPv6Address | None = info.data.get("ip")
        if ip is not None and value > ip.max_prefixlen:
            raise PydanticCustomError("prefix", "it is more than the bits of {ip}", {"ip": str(ip)})
        return value


class _Ip(_Part):
    enabled: bool = False
    dhcp: bool = False
    autoconf: bool = False
    address: tuple[_Address, ...] = ()

    @property
    def is_automatic(self) -> bool:
        return self.enabled and (self.dhcp or self.autoconf)


class _Vlan(_Part):
    base_iface: str
    id: int = Field(ge=1, le=4094)


class _Port(_Part):
    name: str


_PORT = AliasChoices("port", "ports")


class _Bond(_Part):
    mode: str | int
    port: tuple[str, ...] = Field(default=(), validation_alias=_PORT)
    ports_config: tuple[_Port, ...] = ()

    @property
    def ports(self) -> tuple[str, ...]:
        """The ports. nmstate accepts either list, or both with the same ports."""
        return tuple(dict.fromkeys((*self.port, *(port.name for port in self.ports_config))))

    @property
    def kernel_mode(self) -> str:
        """The mode with the kernel's name; nmstate also accepts numbers, and another name for LACP."""
        mode = str(self.mode)
        return _MODES[int(mode)] if mode in map(str, range(len(_MODES))) else mode.replace("lacp", "802.3ad")


class _Bridge(_Part):
    port: tuple[_Port, ...] = Field(default=(), validation_alias=_PORT)


class Link(_Part):
    """One interface."""

    name: str = Field(pattern=r"^[^\s/]{1,15}$")
    type: str = "unknown"
    state: Literal["up", "down", "absent", "ignore"] = "up"
    mtu: int | None = Field(default=None, ge=68, le=65535)
    mac_address: str | None = None
    identifier: str = "name"
    ipv4: _Ip = _Ip()
    ipv6: _Ip = _Ip()
    vlan: _Vlan | None = None
    link_aggregation: _Bond | None = Field(default=None, validation_alias=AliasChoices("link-aggregation", "bond"))
    bridge: _Bridge | None = None

    @property
    def is_card(self) -> bool:
        """Whether it is a physical card."""
        return self.type in _CARDS

    @property
    def ports(self) -> tuple[str, ...]:
        """The ports of a bond or a bridge."""
        bridged = (port.name for port in self.bridge.port) if self.bridge is not None else ()
        return (*(self.link_aggregation.ports if self.link_aggregation is not None else ()), *bridged)

    @property
    def is_automatic(self) -> bool:
        """Whether it gets addresses, routes or resolvers from DHCP or router advertisements."""
        return self.ipv4.is_automatic or self.ipv6.is_automatic

    @property
    def addresses(self) -> Iterator[IpInterface]:
        """Its static addresses."""
        for ip in (self.ipv4, self.ipv6):
            for each in ip.address if ip.enabled else ():
                yield ipaddress.ip_interface(f"{each.ip}/{each.prefix_length}")

    @property
    def told(self) -> str:
        """A description for people."""
        what = ""
        if self.link_aggregation is not None:
            what = f" ({self.link_aggregation.mode} of {', '.join(self.link_aggregation.ports)})"
        elif self.vlan is not None:
            what = f" (VLAN {self.vlan.id} on {self.vlan.base_iface})"
        got = [*map(str, self.addresses), *(["DHCP"] if self.is_automatic else [])]
        return f"{self.name}{what}{' ' if got else ''}{', '.join(got)}"


class _Route(_Part):
    destination: IPvAnyNetwork | None = None
    next_hop_address: IPvAnyAddress | None = None
    next_hop_interface: str | None = None
    table_id: int | None = None
    state: Literal["absent"] | None = None

    @property
    def is_default(self) -> bool:
        return str(self.destination) in _DEFAULT and self.table_id in _MAIN_TABLES and self.state is None


class _Routes(_Part):
    config: tuple[_Route, ...] = ()


class _Resolvers(_Part):
    server: tuple[str, ...] = ()


class _Dns(_Part):
    config: _Resolvers = _Resolvers()


class NmState(_Part):
    """A host's networks."""

    interfaces: tuple[Link, ...] = ()
    routes: _Routes = _Routes()
    dns_resolver: _Dns = _Dns()

    @property
    def up(self) -> tuple[Link, ...]:
        """The interfaces with state `up`."""
        return tuple(link for link in self.interfaces if link.state == "up")

    def links(self, cards: Mapping[str, str]) -> tuple[str, ...]:
        """What the node check looks for: `HostNetwork.links`. `cards` are MAC addresses by name."""
        found: list[str] = []
        for link in self.up:
            if link.link_aggregation is not None and link.ports and all(port in cards for port in link.ports):
                macs = sorted(cards[port] for port in link.ports)
                found.append(f"{link.name}={link.link_aggregation.kernel_mode}/{','.join(macs)}")
            elif link.vlan is not None and link.vlan.base_iface not in cards:
                found.append(f"{link.name}={link.vlan.id}/{link.vlan.base_iface}")
        return tuple(found)

    @property
    def told(self) -> str:
        """One line that describes the network to people."""
        ports = {port for link in self.up for port in link.ports}
        gateways = [f"default via {each.next_hop_address}" for each in self.routes.config if each.is_default]
        return "; ".join([*(link.told for link in self.up if link.name not in ports), *gateways])


def read(tree: dict[str, Any], path: str) -> tuple[NmState | None, list[tuple[str, str, str, str]]]:
    """Parse a tree as NMState; also returns what is wrong with its form: (path, value, why, remedy)."""
    try:
        return NmState.model_validate(tree), []
    except ValidationError as error:
        return None, list(_problems(error, path))


def _problems(error: ValidationError, path: str) -> Found:
    for each in error.errors(include_url=False):
        where = path
        for part in each["loc"]:
            where += f"[{part}]" if isinstance(part, int) else f".{part}"
        value = each["input"]
        shown = str(value) if isinstance(value, str | int) and each["type"] != "missing" else "[not shown]"
        yield (
            where,
            shown,
            f"it is not NMState: {each['msg']}",
            "correct it; see https://github.com/nmstate/nmstate for examples",
        )
