"""The cluster's names, as DNS records.

What OpenShift wants (installation-dns-user-infra): A records for `api` and `api-int` of all machines that serve the
API, or of the API's own address where it has one; for `*.apps` of the machines that take ingress, or of its own address
where it has one; and for every node; PTR records for the API's own address and every node. With dual stack there are
AAAA records of the same names. The bootstrap machine serves the API too, until it is removed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Address = TypeVar("Address")
"""Plain text, or a `pulumi.Output` of it: the records' shape does not depend on it."""


@dataclass(frozen=True, kw_only=True)
class Record(Generic[Address]):
    """One set of records of the same name and type."""

    name: str
    """The full name, without a dot at the end."""
    type: str
    """`A`, `AAAA`, `PTR`, `TXT` or `CNAME`."""
    values: tuple[Address, ...]
    """Addresses or text, one per record."""


@dataclass(frozen=True, kw_only=True)
class Host(Generic[Address]):
    """Where a host is found."""

    ipv4: Address
    ipv6: Address | None = None
    """None: with IPv4 alone. Whether there is one must be known, for it is a record of its own."""

    @property
    def all(self) -> tuple[Address, ...]:
        """Its addresses."""
        return (self.ipv4,) if self.ipv6 is None else (self.ipv4, self.ipv6)


def api_records(
    *,
    domain: str,
    control_plane: Mapping[str, Host[Address]],
    arbiters: Mapping[str, Host[Address]],
    api_address: Host[Address] | None = None,
) -> tuple[Record[Address], ...]:
    """What the cluster needs to come about. `domain` is the cluster's; the maps give addresses by full node name."""
    api = tuple(control_plane.values()) if api_address is None else (api_address,)
    return (*_name(f"api.{domain}", api), *_name(f"api-int.{domain}", api), *_nodes(control_plane), *_nodes(arbiters))


def ingress_records(
    *,
    domain: str,
    control_plane: Mapping[str, Host[Address]],
    workers: Mapping[str, Host[Address]],
    schedulable: bool = False,
    address: Address | None = None,
) -> tuple[Record[Address], ...]:
    """What its users need: the workers' names, and the machines that take ingress. `schedulable`: the control plane
    takes pods, and routers among them, whether there are workers or not. `address`: the IPv4 address of
    ingress; None: the machines' own."""
    ingress = (*workers.values(), *(control_plane.values() if schedulable or not workers else ()))
    if address is not None:
        return (Record(name=f"*.apps.{domain}", type="A", values=(address,)), *_nodes(workers))
    return (*_name(f"*.apps.{domain}", ingress), *_nodes(workers))


def pool_records(
    *, domain: str, workers: Mapping[str, Host[Address]], takes_ingress: bool
) -> tuple[Record[Address], ...]:
    """The names of workers that are a pool of their own, which may take ingress beside others."""
    return ingress_records(domain=domain, control_plane={}, workers=workers) if takes_ingress else (*_nodes(workers),)


def bootstrap_records(
    *, domain: str, node: str, address: Host[Address], api_has_address: bool = False
) -> tuple[Record[Address], ...]:
    """Records that stand only until the bootstrap machine is removed."""
    own = _nodes({node: address})
    if api_has_address:
        return tuple(own)
    return (*_name(f"api.{domain}", [address]), *_name(f"api-int.{domain}", [address]), *own)


def reverse_name(address: str) -> str:
    """Where the PTR record of an address stands: `1.100.51.198.in-addr.arpa`."""
    return ipaddress.ip_address(address).reverse_pointer


def _nodes(hosts: Mapping[str, Host[Address]]) -> Sequence[Record[Address]]:
    return [record for name, host in hosts.items() for record in _name(name, [host])]


def _name(name: str, hosts: Sequence[Host[Address]]) -> list[Record[Address]]:
    """A name of one or more hosts, in the families that they have."""
    found = [Record(name=name, type="A", values=tuple(host.ipv4 for host in hosts))]
    if ipv6 := tuple(host.ipv6 for host in hosts if host.ipv6 is not None):
        found.append(Record(name=name, type="AAAA", values=ipv6))
    return found
