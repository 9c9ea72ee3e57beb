"""The cluster's names, as DNS records.

OpenShift requires (installation-dns-user-infra):

- A records of `api` and `api-int`: all machines that serve the API, or the API's own address if it has one;
- A records of `*.apps`: the machines that take ingress, or the own address of ingress if it has one;
- an A record of every node;
- PTR records of the API's own address and of every node.

With dual stack there are AAAA records with the same names. The bootstrap machine serves the API too, until it is
removed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Address = TypeVar("Address")
"""Plain text, or a `pulumi.Output` of it: the number and names of records do not depend on the addresses."""


@dataclass(frozen=True, kw_only=True)
class Record(Generic[Address]):
    """One record set: all records with the same name and type."""

    name: str
    """The full name, without a trailing dot."""
    type: str
    """`A`, `AAAA`, `PTR`, `TXT` or `CNAME`."""
    values: tuple[Address, ...]
    """Addresses or texts, one for each record."""


@dataclass(frozen=True, kw_only=True)
class Host(Generic[Address]):
    """The addresses of a host."""

    ipv4: Address
    ipv6: Address | None = None
    """None: IPv4 only. Must be known in a preview, because the address gets a record of its own."""

    @property
    def all(self) -> tuple[Address, ...]:
        """All its addresses."""
        return (self.ipv4,) if self.ipv6 is None else (self.ipv4, self.ipv6)


def api_records(
    *,
    domain: str,
    control_plane: Mapping[str, Host[Address]],
    arbiters: Mapping[str, Host[Address]],
    api_address: Host[Address] | None = None,
) -> tuple[Record[Address], ...]:
    """The records without which the cluster cannot form: `api`, `api-int`, control plane, arbiters.

    `domain` is the cluster's domain; the maps give addresses by full node name.
    """
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
    """The records of ingress and of the workers.

    `schedulable`: the control plane runs pods, and so may run routers, even if there are workers. `address`: the IPv4
    address of ingress; None: `*.apps` resolves to the machines.
    """
    ingress = (*workers.values(), *(control_plane.values() if schedulable or not workers else ()))
    if address is not None:
        return (Record(name=f"*.apps.{domain}", type="A", values=(address,)), *_nodes(workers))
    return (*_name(f"*.apps.{domain}", ingress), *_nodes(workers))


def pool_records(
    *, domain: str, workers: Mapping[str, Host[Address]], takes_ingress: bool
) -> tuple[Record[Address], ...]:
    """The records of workers in a stack of their own; with `takes_ingress`, `*.apps` resolves to them, too."""
    return ingress_records(domain=domain, control_plane={}, workers=workers) if takes_ingress else (*_nodes(workers),)


def bootstrap_records(
    *, domain: str, node: str, address: Host[Address], api_has_address: bool = False
) -> tuple[Record[Address], ...]:
    """Records that exist only until the bootstrap machine is removed."""
    own = _nodes({node: address})
    if api_has_address:
        return tuple(own)
    return (*_name(f"api.{domain}", [address]), *_name(f"api-int.{domain}", [address]), *own)


def reverse_name(address: str) -> str:
    """The name of the PTR record of an address: `1.100.51.198.in-addr.arpa`."""
    return ipaddress.ip_address(address).reverse_pointer


def _nodes(hosts: Mapping[str, Host[Address]]) -> Sequence[Record[Address]]:
    return [record for name, host in hosts.items() for record in _name(name, [host])]


def _name(name: str, hosts: Sequence[Host[Address]]) -> list[Record[Address]]:
    """The A record set of one or more hosts, and the AAAA record set if any has an IPv6 address."""
    found = [Record(name=name, type="A", values=tuple(host.ipv4 for host in hosts))]
    if ipv6 := tuple(host.ipv6 for host in hosts if host.ipv6 is not None):
        found.append(Record(name=name, type="AAAA", values=ipv6))
    return found
