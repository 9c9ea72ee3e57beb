"""Reads a host's networkConfig (NMState) as far as the common settings of all servers can express it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from metal_ipi.stacks.sections import nmstate
from metal_ipi.stacks.sections.nmstate import NmState
from tools.importing.documents import Tree, is_list
from tools.importing.taking import Place, Taking


@dataclass(frozen=True, kw_only=True)
class Network:
    """What was found; empty values for what was not."""

    place: Place
    tree: Tree
    """The networkConfig without keys and passwords."""
    state: NmState
    address: str = ""
    """IPv4 address at which the host is reached: the one in the network of the default gateway."""
    ipv6: str = ""
    """IPv6 address of the same interface; empty if there is none, or more than one."""
    prefix: int | None = None
    gateway: str = ""
    interface: str = ""

    @property
    def nameservers(self) -> tuple[str, ...]:
        """Its DNS resolvers."""
        return self.state.dns_resolver.config.server

    @property
    def is_static(self) -> bool:
        """Whether it has only one Ethernet interface with one static IPv4 address, a default route and resolvers."""
        routes, links = self.state.routes.config, self.state.interfaces
        if len(links) != 1 or len(routes) != 1 or not (self.address and self.gateway and self.nameservers):
            return False
        link = links[0]
        return (
            link.type in ("ethernet", "unknown")
            and (link.state, link.mtu, link.is_automatic, link.ipv6.enabled) == ("up", None, False, False)
            and len(link.ipv4.address) == 1
            and routes[0].next_hop_interface in (None, link.name)
            and not any(":" in server for server in self.nameservers)
            and _is_read(self.tree, self.state.model_dump(by_alias=True, exclude_unset=True))
        )

    @property
    def cards(self) -> dict[str, str]:
        """Interface name to MAC address, for interfaces with a MAC address in the networkConfig."""
        return {link.name: link.mac_address for link in self.state.up if link.is_card and link.mac_address}

    @property
    def named(self) -> tuple[str, ...]:
        """All physical interfaces that it names."""
        links = {link.name for link in self.state.up if not link.is_card}
        cards = [link.name for link in self.state.up if link.is_card]
        ports = [port for link in self.state.up for port in link.ports if port not in links]
        return tuple(dict.fromkeys([*cards, *ports]))


def read(taking: Taking, place: Place | None) -> Network | None:
    """Reads a networkConfig; reports one that is invalid."""
    if place is None or not place.value:
        return None
    if not isinstance(place.value, dict):
        taking.tell(place, "it is not NMState: it is not a mapping", "correct it, and import again")
        return None
    tree = _without_keys(taking, place)
    state, problems = nmstate.read(tree, place.where)
    for where, _, why, _ in problems:
        part = Place(document=place.document, where=where)
        taking.tell(part, why, "correct it, and import again; or set networkConfig of the server", of=place)
    if state is None:
        return None
    hops = (route.next_hop_address for route in state.routes.config if route.is_default)
    gateway = next((hop for hop in hops if hop is not None and hop.version == 4), None)
    own = [(link.name, each) for link in state.up for each in link.addresses if each.version == 4]
    if gateway is not None:
        own = [(name, each) for name, each in own if gateway in each.network]
    elif len(own) > 1 or any(link.is_automatic for link in state.up):
        own = []  # unknown: DHCP may assign it, or there are several
    name, address = own[0] if own else ("", None)
    ipv6 = [
        str(each.ip)
        for link in state.up
        for each in link.addresses
        if link.name == name and each.version == 6 and not each.is_link_local
    ]
    return Network(
        place=place,
        tree=tree,
        state=state,
        address=str(address.ip) if address is not None else "",
        ipv6=ipv6[0] if len(ipv6) == 1 else "",
        prefix=address.network.prefixlen if address is not None else None,
        gateway=str(gateway or ""),
        interface=name,
    )


def _without_keys(taking: Taking, place: Place) -> Tree:
    """Removes keys and passwords: a stack file must not contain them, and nothing could use them."""
    tree = cast(Tree, place.value)
    interfaces: list[Any] = []
    for item in place.below("interfaces").items:
        kept: Any = item.value
        for name in nmstate.SECRETS if isinstance(kept, dict) else ():
            if name in kept:
                kept = {key: value for key, value in cast(Tree, kept).items() if key != name}
                taking.tell(item.below(name), "it contains keys, which networkConfig may not contain",
                            "give it to the nodes by a MachineConfig (install.manifests)", of=place)  # fmt: skip
        interfaces.append(kept)
    return {**tree, "interfaces": interfaces} if interfaces else tree


def _is_read(given: Any, known: Any) -> bool:
    """Whether all of the given configuration is understood here."""
    if isinstance(given, dict):
        return all(name in known and _is_read(each, known[name]) for name, each in cast(Tree, given).items())
    return not is_list(given) or all(map(_is_read, given, known))
