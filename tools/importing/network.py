"""What of a host's networkConfig (NMState) there is a setting for: one Ethernet card with one static IPv4 address.

Source: nmstate's own documentation of its state (nmstate.io).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from tools.importing.documents import Tree, is_list

_OF_CARDS = {"name", "type", "state", "mac-address", "identifier", "ipv4", "ipv6"}
_OF_IPV4 = {"enabled", "address", "dhcp"}
_DEFAULT = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class Network:
    """What was found; empty where nothing was."""

    address: str = ""
    prefix: int | None = None
    gateway: str = ""
    nameservers: tuple[str, ...] = ()
    interface: str = ""
    left: tuple[str, ...] = ()
    """The parts that there is no setting for."""

    @property
    def is_static(self) -> bool:
        """Whether it is all that a machine has to be told where no DHCP server tells it."""
        found = (self.address, self.prefix, self.gateway, self.nameservers, self.interface)
        return all(found) and not self.left


def read(config: Any) -> Network:
    """Read a networkConfig."""
    tree = _tree(config)
    cards = [_tree(each) for each in _list(tree.get("interfaces"))]
    found = next((number for number, card in enumerate(cards) if _addresses(card)), None)
    if found is None:
        return Network(left=tuple(tree))
    card, (first, *_) = cards[found], _addresses(cards[found])
    routes = [_tree(each) for each in _list(_tree(tree.get("routes")).get("config"))]
    default = next((each for each in routes if each.get("destination") == _DEFAULT), {})
    resolvers = _tree(_tree(tree.get("dns-resolver")).get("config"))
    servers = tuple(str(each) for each in _list(resolvers.get("server")))
    left = [
        *(name for name in tree if name not in ("interfaces", "routes", "dns-resolver")),
        *(
            f"interfaces[{number}] ({each.get('type', 'ethernet')})"
            for number, each in enumerate(cards)
            if number != found
        ),
        *(f"interfaces[{found}].{name}" for name in _of_card(card)),
        *(f"routes.config[{number}]" for number, each in enumerate(routes) if each is not default),
        *(f"dns-resolver.config.{name}" for name in resolvers if name != "server"),
        *(f"dns-resolver.config.server ({each})" for each in servers if ":" in each),
    ]
    prefix = first.get("prefix-length")
    return Network(
        address=str(first.get("ip", "")),
        prefix=prefix if isinstance(prefix, int) else None,
        gateway=str(default.get("next-hop-address", "")),
        nameservers=tuple(each for each in servers if ":" not in each),
        interface=str(card.get("name", "")),
        left=tuple(left),
    )


def _addresses(card: Tree) -> list[Tree]:
    ipv4 = _tree(card.get("ipv4"))
    return [] if ipv4.get("enabled") is False else [_tree(each) for each in _list(ipv4.get("address"))]


def _of_card(card: Tree) -> Iterator[str]:
    """What is more than an Ethernet card with one static address."""
    ipv4 = _tree(card.get("ipv4"))
    if card.get("type", "ethernet") != "ethernet":
        yield f"type ({card['type']})"
    if card.get("state", "up") != "up":
        yield f"state ({card['state']})"
    yield from (name for name in card if name not in _OF_CARDS)
    yield from (f"ipv4.{name}" for name in ipv4 if name not in _OF_IPV4)
    if ipv4.get("dhcp") is True:
        yield "ipv4.dhcp"
    yield from (f"ipv4.address[{number}]" for number in range(1, len(_addresses(card))))
    if _tree(card.get("ipv6")).get("enabled") is True:
        yield "ipv6"


def _tree(value: Any) -> Tree:
    return cast(Tree, value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if is_list(value) else []
