"""Conflicts in the networks of hosts: within networkConfig, with the server's other settings, with the cluster.

`stacks.host_networks` asks nmstatectl about the rest. The rules include those of agent-config.yaml: a card is
identified by its MAC address (openshift/installer, pkg/asset/agent/agentconfig/agenthosts.go).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metal_ipi.stacks.platforms.listed.settings import ListedServers, LocalVm, MachinesIpv6, Server
from metal_ipi.stacks.platforms.section import items
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections import nmstate
from metal_ipi.stacks.sections.nmstate import DEFAULT_MTU, Link, NmState

if TYPE_CHECKING:
    from metal_ipi.stacks.model import Settings


@dataclass(frozen=True, kw_only=True)
class _Host:
    """A server with a networkConfig."""

    server: Server
    path: str
    state: NmState

    @property
    def config(self) -> str:
        return f"{self.path}.networkConfig"

    def links(self) -> Iterator[tuple[str, Link]]:
        """The interfaces with state `up`, with their paths."""
        for index, link in enumerate(self.state.interfaces):
            if link.state == "up":
                yield f"{self.config}.interfaces[{index}]", link

    @property
    def by_name(self) -> dict[str, Link]:
        return {link.name: link for _, link in self.links()}

    @property
    def cards(self) -> dict[str, str]:
        return {card.name: card.mac_address for card in self.server.interfaces}


def conflicts(settings: Settings, platform: ListedServers[Any]) -> Found:
    """All conflicts in the networks of hosts."""
    hosts: list[_Host] = []
    for index, server in enumerate(platform.servers):
        path = f"platform.servers[{index}]"
        yield from _together(server, path)
        if server.network_config is None:
            continue
        yield from _without_keys(server.network_config, f"{path}.networkConfig")
        state, problems = nmstate.read(server.network_config, f"{path}.networkConfig")
        yield from problems
        if state is not None:
            hosts.append(_Host(server=server, path=path, state=state))
    for host in hosts:
        yield from _known_by_mac(host)
        yield from _cards(host)
        yield from _layers(host)
        yield from _provisioning(host, platform)
        yield from _ways(host, platform)
    yield from _shared_cards(platform)
    yield from _shared_addresses(settings, platform, hosts)


def _together(server: Server, path: str) -> Found:
    if server.network_config is None and server.interfaces:
        yield (
            f"{path}.networkConfig",
            "(not set)",
            "interfaces lists cards, but networkConfig is not set",
            "set networkConfig (NMState), or remove interfaces",
        )
    elif server.network_config is not None and not server.interfaces:
        yield (
            f"{path}.interfaces",
            "(not set)",
            "networkConfig names cards, but interfaces, which identifies them, is not set",
            "set interfaces: for each card its name as in networkConfig, and its macAddress",
        )
    elif server.network_config is not None and server.mac not in [card.mac_address for card in server.interfaces]:
        yield (
            f"{path}.interfaces",
            ", ".join(card.mac_address for card in server.interfaces),
            f"the card that the server boots from, {server.mac} (mac), is none of them: the live system would have no"
            " network there",
            "add it, or correct mac",
        )


def _without_keys(tree: dict[str, Any], path: str) -> Found:
    for index, each in enumerate(items(tree.get("interfaces"))):
        for name in (name for name in nmstate.SECRETS if isinstance(each, dict) and name in each):
            yield (
                f"{path}.interfaces[{index}].{name}",
                "[not shown]",
                "it contains keys, and anybody who reaches the boot server could read them",
                "remove it, and configure it on the nodes by a MachineConfig (install.manifests)",
            )


def _cards(host: _Host) -> Found:
    """Every card must have one MAC address, and names of interfaces must be unique."""
    seen: set[str] = set()
    for path, link in host.links():
        if link.name in seen:
            yield f"{path}.name", link.name, "another interface of this host has this name", "give each its own name"
        seen.add(link.name)
        if link.is_card and link.name not in host.cards:
            yield (
                f"{path}.name",
                link.name,
                "the server's interfaces have no entry that gives its MAC address",
                f"add {{name: {link.name}, macAddress: ...}} to {host.path}.interfaces, or correct the name or type",
            )
        mac = host.cards.get(link.name)
        if link.is_card and mac is not None and (link.mac_address or mac).lower() != mac:
            yield (
                f"{path}.mac-address",
                str(link.mac_address),
                f"the server's interfaces say that {link.name} is the card with {mac}",
                "correct one of them; a card keeps its own MAC address here",
            )
        if not link.is_card and mac is not None:
            yield (
                f"{host.path}.interfaces",
                link.name,
                f"in networkConfig it is a {link.type}, not a card",
                "list only cards; other interfaces refer to cards by these names",
            )
    names = [card.name for card in host.server.interfaces]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{host.path}.interfaces", name, "two cards have this name", "give each its own name"


def _known_by_mac(host: _Host) -> Found:
    """Every profile must find its cards by the MAC addresses in `interfaces`; also for interfaces that are down."""
    for index, link in enumerate(host.state.interfaces):
        path = f"{host.config}.interfaces[{index}]"
        if link.state not in ("up", "down"):
            continue
        if link.type not in (*nmstate.COVERED, "unknown"):
            yield (
                f"{path}.type",
                link.type,
                f"only {', '.join(nmstate.COVERED)} are known to work with cards that are identified by MAC address",
                "remove it, and let the nodes make it once the cluster runs (operator kubernetes-nmstate)",
            )
        if link.identifier != "name" and (link.identifier, link.is_card) != ("mac-address", True):
            yield (
                f"{path}.identifier",
                link.identifier,
                "cards are identified by the MAC addresses in the server's interfaces, all other interfaces by name",
                "remove it",
            )


def _layers(host: _Host) -> Found:
    """Bonds and VLANs must be on existing interfaces, with an MTU that is not larger."""
    known = {**dict.fromkeys(host.cards), **host.by_name}
    vlans: dict[tuple[str, int], str] = {}
    ports: dict[str, str] = {}
    for path, link in host.links():
        if link.vlan is not None:
            base, place = link.vlan.base_iface, (link.vlan.base_iface, link.vlan.id)
            if base not in host.by_name:
                yield (
                    f"{path}.vlan.base-iface",
                    base,
                    "networkConfig has no such interface that is up",
                    f"describe it, or name one of: {', '.join(name for name in host.by_name if name != link.name)}",
                )
            elif link.mtu is not None and link.mtu > (host.by_name[base].mtu or DEFAULT_MTU):
                yield (
                    f"{path}.mtu",
                    str(link.mtu),
                    f"{base}, its base interface, has an mtu of {host.by_name[base].mtu or DEFAULT_MTU}: larger "
                    "frames would be lost",
                    f"raise the mtu of {base}, or lower this one",
                )
            if place in vlans:
                yield f"{path}.vlan.id", str(link.vlan.id), f"{vlans[place]} is the same VLAN of {base}", "remove one"
            vlans.setdefault(place, link.name)
        if link.link_aggregation is not None and not link.ports:
            yield (
                f"{path}.link-aggregation",
                "(no ports)",
                "a bond needs ports; nmstatectl does not derive them from `controller`",
                "set port: the names of its cards",
            )
        for port in link.ports:
            if port not in known:
                yield (
                    path,
                    port,
                    f"it is a port of {link.name}, and neither a card of the server's interfaces nor described here",
                    f"name one of: {', '.join(name for name in known if name != link.name)}",
                )
            elif port in ports:
                yield path, port, f"it is a port of {ports[port]} as well", "remove it from one of them"
            elif (below := host.by_name.get(port)) is not None:
                if below.mtu is not None and below.mtu < (link.mtu or DEFAULT_MTU):
                    yield (
                        path,
                        str(link.mtu or DEFAULT_MTU),
                        f"its port {port} has an mtu of {below.mtu}: larger frames would be lost",
                        f"raise the mtu of {port}, or lower that of {link.name}",
                    )
                if below.is_automatic or list(below.addresses):
                    yield path, port, f"a port of {link.name} cannot have addresses", f"give them to {link.name}"
            ports.setdefault(port, link.name)


def _provisioning(host: _Host, platform: ListedServers[Any]) -> Found:
    """The server must be reachable at one of the addresses that it will have."""
    own = {str(each.ip): each for link in host.state.up for each in link.addresses}
    if platform.ipv6 is not None:
        yield from _ipv6(host, platform.ipv6, own)
    if any(link.is_automatic for link in host.state.up):
        return  # the address may come from DHCP or autoconf
    for name, address in (("address", host.server.address), ("privateAddress", host.server.private_address)):
        if address is not None and address not in own:
            yield (
                f"{host.path}.{name}",
                address,
                f"no interface of networkConfig has it: {', '.join(own) or 'there is no address at all'}",
                "correct one of them: the machine is reached there, from its live system on",
            )
    reached = own.get(host.server.address)
    if reached is not None and platform.network is not None and reached.network != platform.network:
        yield (
            f"{host.config}.interfaces",
            str(reached),
            f"the machines' network is {platform.network} (platform.gateway, platform.prefix)",
            "correct prefix-length, or platform.prefix",
        )


def _ipv6(host: _Host, section: MachinesIpv6, own: Mapping[str, nmstate.IpInterface]) -> Found:
    """With dual stack there must be an IPv6 address in the machines' network, and an IPv6 default route."""
    automatic = any(link.ipv6.is_automatic for link in host.state.up)
    address = host.server.ipv6_address
    reached = own.get(address or "")
    if not automatic and address is not None and reached is None:
        yield (
            f"{host.path}.ipv6Address",
            address,
            f"no interface of networkConfig has it: {', '.join(own) or 'there is no address at all'}",
            "correct one of them, or use router advertisements (ipv6.autoconf) or DHCP",
        )
    if reached is not None and str(reached.network) != section.network:
        yield (
            f"{host.config}.interfaces",
            str(reached),
            f"the machines' IPv6 network is {section.network} (platform.ipv6.network)",
            "correct prefix-length, or platform.ipv6.network",
        )
    if not automatic and not any(
        str(each.destination) == "::/0" for each in host.state.routes.config if each.is_default
    ):
        yield (
            f"{host.config}.routes",
            "(not set)",
            "no IPv6 default route, and no router advertisements: the node would have no IPv6 address in the cluster",
            "add to routes.config: destination ::/0, next-hop-address and next-hop-interface; or set ipv6.autoconf",
        )


def _ways(host: _Host, platform: ListedServers[Any]) -> Found:
    """There must be a default route, through a network that the host is in."""
    automatic = any(link.is_automatic for link in host.state.up)
    routes = [each for each in host.state.routes.config if each.state is None]
    defaults = [each for each in routes if each.is_default]
    if not automatic and not defaults:
        yield (
            f"{host.config}.routes",
            "(not set)",
            "no default route, and no interface with DHCP that could bring one",
            f"add to routes.config: destination 0.0.0.0/0, next-hop-address {platform.gateway or '<gateway>'}, and"
            " next-hop-interface",
        )
    if not automatic and not host.state.dns_resolver.config.server:
        yield (
            f"{host.config}.dns-resolver",
            "(not set)",
            "no resolver, and no interface with DHCP that could bring one",
            "set dns-resolver.config.server",
        )
    for index, route in enumerate(host.state.routes.config):
        path, hop = f"{host.config}.routes.config[{index}]", route.next_hop_address
        if route.state is not None or hop is None:
            continue
        link = host.by_name.get(route.next_hop_interface or "")
        if link is None:
            yield (
                f"{path}.next-hop-interface",
                route.next_hop_interface or "(not set)",
                "networkConfig has no such interface that is up",
                f"name one of: {', '.join(host.by_name)}",
            )
        elif not link.is_automatic and not any(hop in each.network for each in link.addresses):
            yield (
                f"{path}.next-hop-address",
                str(hop),
                f"it cannot be reached: {link.name} is in no network that contains it"
                f" ({', '.join(str(each.network) for each in link.addresses) or 'it has no address'})",
                "correct the gateway, the interface, or the prefix-length of its address",
            )
        if route.is_default and hop.version == 4 and platform.gateway not in (None, str(hop)):
            yield (
                f"{path}.next-hop-address",
                str(hop),
                f"the machines' gateway is {platform.gateway} (platform.gateway)",
                "correct one of them",
            )


def _shared_cards(platform: ListedServers[Any]) -> Found:
    """A card must be in one server only, under one name. `listed.conflicts` compares the servers' `mac`."""
    owners = {
        server.mac: (server.name, f"platform.servers[{index}].mac") for index, server in enumerate(platform.servers)
    }
    if isinstance(platform.bootstrap, LocalVm):
        owners[platform.bootstrap.mac] = ("", "platform.bootstrap.mac")
    listed: dict[str, str] = {}
    for index, server in enumerate(platform.servers):
        for number, card in enumerate(server.interfaces):
            path, mac = f"platform.servers[{index}].interfaces[{number}].macAddress", card.mac_address
            owner, where = owners.get(mac, (server.name, ""))
            if mac in listed or owner != server.name:
                yield (
                    path,
                    mac,
                    f"{listed.get(mac, where)} is the same",
                    "give each card's own, from the BMC's inventory",
                )
            listed.setdefault(mac, path)


def _shared_addresses(settings: Settings, platform: ListedServers[Any], hosts: list[_Host]) -> Found:
    """Addresses must be unique among all hosts."""
    taken: dict[str, tuple[str, str]] = {}
    for index, server in enumerate(platform.servers):
        for name, address in (
            ("address", server.address),
            ("privateAddress", server.private_address),
            ("ipv6Address", server.ipv6_address),
        ):
            if address is not None:
                taken.setdefault(address, (server.name, f"platform.servers[{index}].{name}"))
    others = [("platform.gateway", platform.gateway)]
    if isinstance(platform.bootstrap, LocalVm):
        others.append(("platform.bootstrap.address", platform.bootstrap.address))
    taken |= {str(address): ("", path) for path, address in others if address is not None}
    taken |= {address: ("", path) for path, address in settings.named_addresses.items()}
    inside = {what: ipaddress.ip_network(cidr) for what, cidr in settings.install_config.networking.inside.items()}
    for host in hosts:
        for path, link in host.links():
            for each in link.addresses:
                owner, where = taken.get(str(each.ip), (host.server.name, ""))
                if owner != host.server.name or where.startswith(f"{host.config}."):
                    yield path, str(each.ip), f"{where} is the same", "give each its own"
                if owner == host.server.name:
                    taken[str(each.ip)] = (host.server.name, f"{path} ({link.name})")
                for what, network in inside.items():
                    if each.version == network.version and each.network.overlaps(network):
                        yield (
                            path,
                            str(each),
                            f"the cluster uses it internally: {what} is {network}",
                            "use addresses of another network",
                        )
