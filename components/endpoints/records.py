"""The cluster's names, as DNS records.

What OpenShift wants (installation-dns-user-infra): A records for `api` and `api-int` of all machines that serve the
API, or of the API's own address where it has one; for `*.apps` of the machines that take ingress, or of its own address
where it has one; and for every node; PTR records for the API's own address and every node. The bootstrap machine serves
the API too, until it is removed.
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


def api_records(
    *, domain: str, control_plane: Mapping[str, Address], api_address: Address | None = None
) -> tuple[Record[Address], ...]:
    """What the cluster needs to come about. `domain` is the cluster's; the map gives address by full node name."""
    api = tuple(control_plane.values()) if api_address is None else (api_address,)
    return (
        Record(name=f"api.{domain}", type="A", values=api),
        Record(name=f"api-int.{domain}", type="A", values=api),
        *_nodes(control_plane),
    )


def ingress_records(
    *,
    domain: str,
    control_plane: Mapping[str, Address],
    workers: Mapping[str, Address],
    schedulable: bool = False,
    address: Address | None = None,
) -> tuple[Record[Address], ...]:
    """What its users need: the workers' names, and the machines that take ingress. `schedulable`: the control plane
    takes pods, and routers among them, whether there are workers or not. `address`: the ingress address; None: the
    machines' own."""
    ingress = (*workers.values(), *(control_plane.values() if schedulable or not workers else ()))
    ingress = ingress if address is None else (address,)
    return (Record(name=f"*.apps.{domain}", type="A", values=ingress), *_nodes(workers))


def bootstrap_records(
    *, domain: str, node: str, address: Address, api_has_address: bool = False
) -> tuple[Record[Address], ...]:
    """Records that stand only until the bootstrap machine is removed."""
    own = _nodes({node: address})
    if api_has_address:
        return tuple(own)
    return (
        Record(name=f"api.{domain}", type="A", values=(address,)),
        Record(name=f"api-int.{domain}", type="A", values=(address,)),
        *own,
    )


def reverse_name(address: str) -> str:
    """Where the PTR record of an address stands: `1.100.51.198.in-addr.arpa`."""
    return ipaddress.ip_address(address).reverse_pointer


def _nodes(addresses: Mapping[str, Address]) -> Sequence[Record[Address]]:
    return [Record(name=name, type="A", values=(address,)) for name, address in addresses.items()]
