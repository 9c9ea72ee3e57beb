"""The networks of pods and services: `networking` of install-config.yaml.

Rules: openshift/installer, pkg/types/validation/installconfig.go (validateNetworking, validateNetworkingIPVersion) and
pkg/validate/validate.go.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field, model_validator

from metal_ipi.components.install.install_config import (
    CLUSTER_NETWORK,
    HOST_PREFIX,
    HOST_PREFIX_IPV6,
    JOIN_NETWORK,
    OVN_NETWORKS,
    OVN_NETWORKS_IPV6,
    SERVICE_NETWORK,
)
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.base import Section, matching, some, wrong

_SERVICE_BITS, _FEWEST_BITS, _SMALLEST = 20, 2, 30
"""kube-apiserver accepts at most 20 bits for the network of services. A network with less than 2 bits (IPv4: /30) is
too small."""
_CIDR = re.compile(r"[0-9A-Fa-f.:]+/[0-9]{1,3}")
_NO_IPV4 = "clusters with IPv6 only are not supported: machines are reached, booted and installed at IPv4 addresses"


def _is_ipv6(network: str) -> bool:
    return ":" in network


def _network(value: str) -> str:
    try:
        if not _CIDR.fullmatch(value):
            raise ValueError("address and length are wanted")
        network = ipaddress.ip_network(value)
    except ValueError as error:
        raise wrong(f"it is not a network: {error}", f"give address and length, e.g. {CLUSTER_NETWORK}") from None
    if network.max_prefixlen - network.prefixlen < _FEWEST_BITS or network.network_address.is_unspecified:
        raise wrong(
            "it is too small",
            f"give a network of /{network.max_prefixlen - _FEWEST_BITS} or larger, e.g. {CLUSTER_NETWORK}",
        )
    return value


def _network_of_ipv4(value: str) -> str:
    if ":" in value:
        raise wrong("it is not an IPv4 network", f"give address and length, e.g. {CLUSTER_NETWORK}")
    return value


def _network_of_ipv6(value: str) -> str:
    if value != str(ipaddress.ip_network(value)) or not _is_ipv6(value):
        raise wrong(
            "it is not an IPv6 network in its shortest form",
            f"write it as {ipaddress.ip_network(value)}, e.g. 2001:db8::/64",
        )
    return value


Network = Annotated[str, AfterValidator(_network)]
"""An IPv4 or IPv6 network in CIDR notation."""
Ipv6Network = Annotated[Network, AfterValidator(_network_of_ipv6)]
"""An IPv6 network in CIDR notation, in its shortest form."""


def _supported(value: str) -> str:
    if value.lower() in ("openshiftsdn", "kuryr"):
        raise wrong("OpenShift has no such network plug-in any more", "take OVNKubernetes")
    return value


NetworkType = Annotated[
    str,
    matching(r"[A-Za-z][A-Za-z0-9-]{0,62}", "it is not a name of a network plug-in", "give e.g. OVNKubernetes"),
    AfterValidator(_supported),
]
"""A network plug-in."""


def _one_of_each(value: tuple[str, ...]) -> tuple[str, ...]:
    if sorted(":" in each for each in value) not in ([False], [True], [False, True]):
        raise wrong(
            f"there are {len(value)}: {', '.join(value)}",
            "give exactly one, or with dual stack one of IPv4 and one of IPv6",
        )
    return value


class ClusterNetwork(Section):
    """A network for the addresses of pods."""

    cidr: Network = Field(description="the network")
    host_prefix: int = Field(
        default=HOST_PREFIX,
        ge=1,
        le=HOST_PREFIX_IPV6,
        description="the prefix length of each node's part of it: 23 allows 510 pods; always 64 for an IPv6 network",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_ipv6(cls, tree: Any) -> Any:
        if isinstance(tree, dict) and _is_ipv6(str(tree.get("cidr"))):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            return {"hostPrefix": HOST_PREFIX_IPV6, **tree}
        return cast("Any", tree)


class Ipv4(Section):
    """OVN-Kubernetes' own IPv4 networks."""

    internal_join_subnet: Annotated[Network, AfterValidator(_network_of_ipv4)] = Field(
        default=JOIN_NETWORK, description="the network between OVN's routers; it needs one address per node"
    )


class OvnKubernetes(Section):
    """OVN-Kubernetes' own networks."""

    ipv4: Ipv4 = Field(default_factory=Ipv4, description="the IPv4 networks")


class Networking(Section):
    """The networks of pods and services, which exist within the cluster only."""

    network_type: NetworkType = Field(
        default="OVNKubernetes",
        description="the network plug-in; any other than OVNKubernetes must be in install.manifests",
    )
    cluster_network: Annotated[tuple[ClusterNetwork, ...], AfterValidator(some)] = Field(
        default=(ClusterNetwork(cidr=CLUSTER_NETWORK),), strict=False, description="the pods' networks"
    )
    service_network: Annotated[tuple[Network, ...], AfterValidator(_one_of_each)] = Field(
        default=(SERVICE_NETWORK,),
        strict=False,
        description="the services' network; with dual stack first the IPv4 network, then the IPv6 network",
    )
    ovn_kubernetes_config: OvnKubernetes | None = Field(
        default=None, description="not set: OVN-Kubernetes' own networks are its defaults"
    )

    @property
    def inside(self) -> dict[str, str]:
        """The networks that the cluster uses internally, by their purpose."""
        pods = _numbered("the pods' network", [each.cidr for each in self.cluster_network])
        own = {}
        if self.network_type == "OVNKubernetes":
            own = {**OVN_NETWORKS, **(OVN_NETWORKS_IPV6 if self.has_ipv6 else {})}
            if self.ovn_kubernetes_config is not None:
                own[next(iter(OVN_NETWORKS))] = self.ovn_kubernetes_config.ipv4.internal_join_subnet
        return {**pods, **_numbered("the services' network", self.service_network), **own}

    @property
    def has_ipv6(self) -> bool:
        """Whether pods or services have IPv6 addresses."""
        return any(map(_is_ipv6, (*self.service_network, *(each.cidr for each in self.cluster_network))))

    @property
    def nodes(self) -> int:
        """The number of nodes for which the pods' networks have room; the smaller one of both families."""
        rooms: dict[bool, int] = {}
        for each in self.cluster_network:
            bits, of = each.host_prefix - ipaddress.ip_network(each.cidr).prefixlen, _is_ipv6(each.cidr)
            rooms[of] = rooms.get(of, 0) + (2**bits if bits >= 0 else 0)
        return min(rooms.values())

    def contradictions(self) -> Found:
        """Path below `networking`, value, why and remedy of each contradiction."""
        ipv4 = [each.host_prefix for each in self.cluster_network if not _is_ipv6(each.cidr)]
        for index, each in enumerate(self.cluster_network):
            path, value = f"clusterNetwork[{index}].hostPrefix", str(each.host_prefix)
            network, wanted = ipaddress.ip_network(each.cidr), HOST_PREFIX_IPV6
            if network.version == 4 and each.host_prefix > _SMALLEST:
                yield path, value, "a node's part of it would be too small", f"give a prefix of up to {_SMALLEST}"
            elif each.host_prefix < network.prefixlen and (network.version == 4 or each.host_prefix == wanted):
                remedy = "give a longer prefix" if network.version == 4 else f"give a network of /{wanted} or larger"
                yield path, value, f"a node's part of {each.cidr} would be larger than it", remedy
            if network.version == 6 and each.host_prefix != wanted:
                yield (
                    path,
                    value,
                    f"a node's part of an IPv6 network is a /{wanted}",
                    f"set it to {wanted}, or leave it out",
                )
            elif network.version == 4 and each.host_prefix != ipv4[0]:
                yield path, value, "all networks of pods must have the same hostPrefix", "give all the same one"
        for index, services in enumerate(self.service_network):
            network = ipaddress.ip_network(services)
            if (shortest := network.max_prefixlen - _SERVICE_BITS) > network.prefixlen:
                why, remedy = "kube-apiserver allows at most 20 bits for services", f"give a /{shortest} or less"
                yield f"serviceNetwork[{index}]", services, why, remedy
        if self.has_ipv6:
            yield from self._of_two_families()
        if self.ovn_kubernetes_config is not None:
            join, path = self.ovn_kubernetes_config.ipv4.internal_join_subnet, "ovnKubernetesConfig"
            if self.network_type != "OVNKubernetes":
                yield path, join, f"networkType is {self.network_type}", "take it out"
            elif ipaddress.ip_network(join).num_addresses - 3 <= self.nodes:  # the installer's rule
                why = f"it has fewer addresses than the pods' networks have room for nodes, {self.nodes}"
                yield f"{path}.ipv4.internalJoinSubnet", join, why, "give a larger one, or a shorter hostPrefix"
        for (one, first), (other, second) in combinations(self.inside.items(), 2):
            if ipaddress.ip_network(first).overlaps(ipaddress.ip_network(second)):
                yield "", first, f"{one} overlaps {other}, {second}", "give networks that do not overlap"

    def _of_two_families(self) -> Found:
        """On platform none a cluster must have IPv4 first, and both families for pods and services
        (validateNetworkingIPVersion)."""
        given = {
            "clusterNetwork": ("pods", [each.cidr for each in self.cluster_network]),
            "serviceNetwork": ("services", list(self.service_network)),
        }
        if all(_is_ipv6(each) for _, networks in given.values() for each in networks):
            yield "", ", ".join(given["serviceNetwork"][1]), _NO_IPV4, "give an IPv4 network before each IPv6 network"
            return
        for path, (whose, networks) in given.items():
            families, shown = {_is_ipv6(each) for each in networks}, ", ".join(networks)
            if families == {False}:
                yield path, shown, f"other networks have IPv6 addresses, and {whose} have none", "add an IPv6 network"
            elif families == {True}:
                why = f"other networks have IPv4 addresses, and {whose} have none"
                yield path, shown, why, "put an IPv4 network before it"
            elif _is_ipv6(networks[0]):
                yield path, shown, "on platform none IPv4 networks come first", "give the IPv4 networks first"


def _numbered(what: str, networks: Sequence[str]) -> dict[str, str]:
    return {f"{what}{f' {number + 1}' if number else ''}": each for number, each in enumerate(networks)}
