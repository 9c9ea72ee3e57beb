"""Conflicts of dual stack: machines, pods and services must all have both families, or none of them.

Source: openshift/installer, pkg/types/validation/installconfig.go (validateNetworkingIPVersion): an IPv6 network of
services requires IPv6 networks of machines and of pods. The kubelet takes its IPv6 address from the interface of the
default route (machine-config-operator, nodeip-configuration.service), so an IPv6 default route is required too.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from metal_ipi.stacks.platforms.listed.settings import ListedServers, MachinesIpv6
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.api_address import ExternalApi

if TYPE_CHECKING:
    from metal_ipi.stacks.model import Settings

_SMALLEST_WITH_ROUTER = 127
"""Networks of two addresses (RFC 6164) have no anycast address for all their routers."""


def conflicts(settings: Settings, platform: ListedServers[Any]) -> Found:
    """All conflicts of dual stack."""
    section = platform.ipv6
    if section is None:
        yield from _without(settings, platform)
        return
    if not settings.install_config.networking.has_ipv6:
        yield (
            "platform.ipv6.network",
            section.network,
            "the cluster has no IPv6: no network of installConfig.networking is one of IPv6",
            "add one to clusterNetwork and one to serviceNetwork, or remove platform.ipv6",
        )
    for name, value in (("gateway", platform.gateway), ("prefix", platform.prefix)):
        if value is None:
            yield (
                f"platform.{name}",
                "(not set)",
                "with dual stack the installer needs the machines' networks of both families",
                f"set platform.{name}, which is for IPv4",
            )
    yield from _gateway(platform, section)
    yield from _addresses(settings, platform, section)
    network = ipaddress.IPv6Network(section.network)
    for what, cidr in settings.install_config.networking.inside.items():
        if network.overlaps(ipaddress.ip_network(cidr)):
            yield (
                "platform.ipv6.network",
                section.network,
                f"the cluster uses it internally: {what} is {cidr}",
                "use another network for the machines",
            )


def _without(settings: Settings, platform: ListedServers[Any]) -> Found:
    if settings.install_config.networking.has_ipv6:
        yield (
            "platform.ipv6",
            "(not set)",
            "pods or services have IPv6 addresses (installConfig.networking), and the machines have none",
            "set platform.ipv6.network, and each server's ipv6Address",
        )
    for index, server in enumerate(platform.servers):
        if server.ipv6_address is not None:
            yield (
                f"platform.servers[{index}].ipv6Address",
                server.ipv6_address,
                "platform.ipv6 is not set: the machines have only IPv4",
                "remove it, or set platform.ipv6",
            )


def _gateway(platform: ListedServers[Any], section: MachinesIpv6) -> Found:
    path, gateway = "platform.ipv6.gateway", section.gateway
    if platform.network_boot == "static" and gateway is None:
        yield (
            path,
            "(not set)",
            "with networkBoot static machines get it only from this setting, and a node without an IPv6 default route "
            "has no"
            " IPv6 address in the cluster",
            "set it, or networkBoot to dhcp",
        )
    elif platform.network_boot == "dhcp" and gateway is not None:
        yield path, gateway, "with networkBoot dhcp it has no effect", "remove it, or set networkBoot to static"
    elif gateway is not None:
        address, network = ipaddress.IPv6Address(gateway), ipaddress.IPv6Network(section.network)
        if address not in network and not address.is_link_local:
            why = f"it is neither in {network} (platform.ipv6.network) nor a link-local address"
            yield path, gateway, why, "correct it, or the network"


def _addresses(settings: Settings, platform: ListedServers[Any], section: MachinesIpv6) -> Found:
    """Each server must have an IPv6 address of its own in the machines' network."""
    network = ipaddress.IPv6Network(section.network)
    seen: dict[str, str] = {}
    if section.gateway is not None:
        seen[section.gateway] = "platform.ipv6.gateway"
    api = settings.api_address
    if isinstance(api, ExternalApi) and api.ipv6_address is not None:
        seen[api.ipv6_address] = "apiAddress.ipv6Address"
    for index, server in enumerate(platform.servers):
        path, value = f"platform.servers[{index}].ipv6Address", server.ipv6_address
        if value is None:
            why = "with dual stack (platform.ipv6) AAAA records and certificates contain it"
            yield path, "(not set)", why, f"set it to the server's address in {network}"
            continue
        address = ipaddress.IPv6Address(value)
        routers = network.prefixlen < _SMALLEST_WITH_ROUTER and address == network[0]
        if address not in network or routers:
            yield (
                path,
                value,
                f"no machine of the network {network} (platform.ipv6.network) can have it",
                "correct it, or the network",
            )
        if value in seen:
            yield path, value, f"{seen[value]} is the same", "give each its own"
        seen.setdefault(value, path)
