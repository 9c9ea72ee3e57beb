"""Where the cluster's services of type LoadBalancer get their addresses, and how the addresses are announced."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from metal_ipi.stacks.sections.base import Section, matching, wrong

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_MOST_PREFIXES = 10
OPENSHIFT_CATALOG = "redhat-operators"
"""Red Hat's catalogue of operators, which only OpenShift has."""


def _networks(value: str) -> list[_Network]:
    """The networks that a CIDR, or a range `first-last`, covers."""
    first, dash, last = (part.strip() for part in value.partition("-"))
    try:
        if not dash:
            network = ipaddress.ip_network(value)
            covered: list[_Network] | None = [network] if "/" in value else None
        else:
            covered = _between(ipaddress.ip_address(first), ipaddress.ip_address(last))
    except (TypeError, ValueError) as error:
        remedy = "write a CIDR such as 192.0.2.0/28, or a range such as 192.0.2.1-192.0.2.9"
        raise wrong(f"it is not a range of addresses: {error}", remedy) from None
    if covered is None:
        raise wrong("it is one address, not a CIDR or a range", f"write it as {ipaddress.ip_network(value)}")
    return covered


def _between(first: _Address, last: _Address) -> list[_Network]:
    """The networks of a range. Raises TypeError for addresses of two families, ValueError if the range ends before it
    begins."""
    if isinstance(first, ipaddress.IPv4Address) and isinstance(last, ipaddress.IPv4Address):
        return list(ipaddress.summarize_address_range(first, last))
    if isinstance(first, ipaddress.IPv6Address) and isinstance(last, ipaddress.IPv6Address):
        return list(ipaddress.summarize_address_range(first, last))
    raise TypeError(f"{first} and {last} are not of the same family")


def _range(value: str) -> str:
    _networks(value)
    return value


def _block(value: int) -> int:
    if value not in _BLOCKS:
        raise wrong("there are no blocks of this size", f"take one of {', '.join(map(str, _BLOCKS))}")
    return value


_Range = Annotated[str, AfterValidator(_range)]
_Name = Annotated[
    str,
    matching(
        r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?",
        "a pool cannot have this name",
        "use up to 63 of a-z, 0-9 and '-', beginning and ending with a-z or 0-9",
    ),
]
_Interface = Annotated[
    str,
    matching(
        r"[^\s/]{1,15}", "it is not a name of an interface", "give it as `ip link` on the nodes shows it, e.g. bond0"
    ),
]
_Ranges = Annotated[
    tuple[_Range, ...],
    Field(
        default=(),
        strict=False,
        description="CIDRs or ranges (first-last), one per item, that your network routes to the cluster",
    ),
]


class _Pool(Section):
    """What all pools share."""

    name: _Name = Field(description="the pool's name, by which services may ask for it")
    addresses: _Ranges
    auto_assign: bool = Field(
        default=True, description="true: any service may get its addresses; false: only services that name the pool"
    )


class BgpPool(_Pool):
    """Addresses of your facility, or elastic addresses that are reserved for the cluster."""

    reserve: Annotated[int, AfterValidator(_block)] | None = Field(
        default=None,
        description="how many elastic addresses the platform reserves for the pool; give this or addresses",
    )
    aggregation_length: int | None = Field(
        default=None,
        ge=8,
        le=32,
        description="the prefix length with which IPv4 addresses are announced; not set: each address alone (32)",
    )

    @model_validator(mode="after")
    def _one_source(self) -> BgpPool:
        if (self.reserve is None) == (not self.addresses):
            raise wrong(
                "exactly one of addresses and reserve must be set",
                "set addresses to what is routed here already, or reserve to a number of elastic addresses",
            )
        return self

    @model_validator(mode="after")
    def _whole_blocks(self) -> BgpPool:
        """An announced prefix must not be larger than the pool: it would attract traffic for other addresses."""
        length = self.aggregation_length
        if length is None:
            return self
        # A reserved block of n addresses is one prefix of length 32 - log2(n).
        reserved = [32 - (self.reserve.bit_length() - 1)] if self.reserve else []
        lengths = [network.prefixlen for item in self.addresses for network in _networks(item) if network.version == 4]
        longest = max([*lengths, *reserved], default=0)
        if longest > length:
            raise wrong(
                f"the pool has a block of length {longest}, and an announcement of length {length} would reach beyond",
                f"set it to {longest} or more, or leave it out",
                at="aggregationLength",
            )
        return self


class L2Pool(_Pool):
    """Addresses of the nodes' own network that nothing else uses."""

    @model_validator(mode="after")
    def _some(self) -> L2Pool:
        if not self.addresses:
            raise wrong("it is empty", "give addresses of the nodes' network that nothing else uses", at="addresses")
        return self


class _MetalLb(Section):
    """What both ways of announcing share."""

    install: bool = Field(
        default=True, description="true: install MetalLB's operator from catalog; false: MetalLB is there already"
    )
    catalog: str = Field(
        default=OPENSHIFT_CATALOG,
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        description=(
            "the catalogue that contains the operator: redhat-operators on OpenShift, community-operators on OKD"
        ),
    )


class MetalLbBgp(_MetalLb):
    """MetalLB announces the addresses as routes to the platform's BGP peers."""

    type: Literal["metallb-bgp"] = "metallb-bgp"
    pools: tuple[BgpPool, ...] = Field(strict=False, description="the pools of addresses, at least one")
    peers_per_node: int = Field(default=2, ge=1, le=8, description="how many peer addresses a node has; Metal gives 2")
    hold_time: int | None = Field(
        default=None,
        ge=3,
        le=65535,
        description="seconds without a message after which a BGP session counts as lost, at least 3; not set: 90",
    )

    @model_validator(mode="after")
    def _pools(self) -> MetalLbBgp:
        _distinct(self.pools)
        blocks = [pool for pool in self.pools if pool.aggregation_length is not None]
        if len(blocks) > _MOST_PREFIXES:
            raise wrong(
                f"{len(blocks)} pools announce blocks, and peers close a session that announces more than"
                f" {_MOST_PREFIXES} prefixes",
                "join pools",
                at="pools",
            )
        return self


class MetalLbL2(_MetalLb):
    """MetalLB answers for the addresses in the nodes' own network (ARP, NDP); one node at a time takes the traffic."""

    type: Literal["metallb-l2"] = "metallb-l2"
    pools: tuple[L2Pool, ...] = Field(strict=False, description="the pools of addresses, at least one")
    interfaces: tuple[_Interface, ...] = Field(
        default=(), strict=False, description="the nodes' interfaces to answer on; empty: all"
    )

    @model_validator(mode="after")
    def _pools(self) -> MetalLbL2:
        _distinct(self.pools)
        return self


class CloudController(Section):
    """The platform's cloud controller assigns addresses and writes MetalLB's objects; nothing else may write them."""

    type: Literal["cloud-controller"] = "cloud-controller"


class NoServiceAddresses(Section):
    """Services of type LoadBalancer get no address."""

    type: Literal["none"] = "none"


ServiceAddresses = Annotated[
    MetalLbBgp | MetalLbL2 | CloudController | NoServiceAddresses,
    Field(discriminator="type"),
]
"""The default is `NoServiceAddresses()`."""


def pools_that_hold(pools: Sequence[BgpPool | L2Pool], address: str | None) -> list[tuple[str, str]]:
    """The items of the pools that contain an address: (path within the section, item)."""
    if address is None:
        return []
    wanted = ipaddress.ip_address(address)
    return [
        (f"pools[{number}].addresses[{place}]", item)
        for number, pool in enumerate(pools)
        for place, item in enumerate(pool.addresses)
        if any(wanted in network for network in _networks(item))
    ]


def _distinct(pools: Sequence[_Pool]) -> None:
    """Require at least one pool, and unique names and addresses: MetalLB refuses anything else."""
    if not pools:
        raise wrong("there is no pool", "give one, or set type to 'none'", at="pools")
    names = [pool.name for pool in pools]
    for name in names:
        if names.count(name) > 1:
            raise wrong(f"two pools are called '{name}'", "give each a name of its own", at="pools")
    taken: list[tuple[str, str, _Network]] = []
    for pool in pools:
        for item in pool.addresses:
            for network in _networks(item):
                for other, where, before in taken:
                    if network.version == before.version and network.overlaps(before):
                        raise wrong(
                            f"{item} of pool '{pool.name}' and {where} of pool '{other}' overlap",
                            "list each address once",
                            at="pools",
                        )
                taken.append((pool.name, item, network))
