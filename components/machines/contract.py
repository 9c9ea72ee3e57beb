"""The platform seam: what a machine is, whatever it is made of.

A platform gives machines that last (`Platform.machine`) and describes the one that does not
(`Platform.ephemeral_machine`, the bootstrap machine: made by our provider, because it is gone again within the same
`up`). Nothing above the seam asks which platform it is on. A further platform is one more folder here, in
`stacks/platforms` and in `provider/platforms` (docs/where-does-it-go.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pulumi

from metal_ipi.components.boot.ignition import NodeFile
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import MachineOrder, Secret


@dataclass(frozen=True, kw_only=True)
class Boot:
    """What a machine boots and what configures it."""

    ipxe_script_url: pulumi.Input[str] | None = None
    """Where the firmware finds the iPXE script, http or https; None where the platform does not tell it."""
    user_data: pulumi.Input[str] | None = None
    """The Ignition pointer: plain JSON of URLs and hashes; secret, for who knows the URLs can fetch what is there.
    None where the platform hands over none."""
    always_pxe: bool
    """True: the network is booted every time (nothing is on disk)."""
    script: pulumi.Input[str] | None = None
    """The iPXE script itself, for a machine whose platform does not hand out URLs; secret."""


@dataclass(frozen=True, kw_only=True)
class MachineArgs:
    """One machine."""

    node: Node
    """Which one."""
    boot: Boot
    """What it boots."""
    timeout: int
    """Seconds until the platform must call it active."""
    announces: bool = False
    """Whether it announces addresses over BGP: the platform names its neighbours in its metadata."""
    disposable: bool = False
    """Whether nothing is lost with what it runs: it is made anew when what it boots changes."""


@dataclass(frozen=True, kw_only=True)
class BgpNeighbour:
    """Whom a machine may announce addresses to, as its platform says (Metal: `GET /devices/<id>/bgp/neighbors`)."""

    customer_as: int
    """The machine's AS number."""
    customer_ip: str
    """The machine's address that sessions must come from; peers drop them from any other."""
    peer_as: int
    """The peers' AS number."""
    peer_ips: tuple[str, ...]
    """The peers' addresses: a session with each."""
    md5_password: Secret[str] | None = field(default=None, repr=False)
    """The password of the sessions (TCP MD5, RFC 2385), a secret; None where they have none."""
    multihop: bool = False
    """Whether the peers are more than one hop away."""


class Machine(Protocol):
    """A machine as the rest of the program sees it; outputs are the platform's own facts."""

    machine_id: pulumi.Output[str]
    """The platform's id."""
    public_ipv4: pulumi.Output[str]
    """The address it is reached at, without prefix length."""
    private_ipv4: pulumi.Output[str]
    """The address within the facility, without prefix length."""
    public_ipv6: pulumi.Output[str]
    """Empty where the platform gives none."""
    ipv6: str | None
    """The IPv6 address that the cluster has it by, besides: known before the machine is there. None with one family."""
    console: pulumi.Output[str]
    """`user@host` of a serial console over SSH; empty where the platform gives none."""

    @property
    def resource(self) -> pulumi.Resource:
        """What other resources may depend on."""
        ...


def node_addresses(machines: Mapping[Node, Machine]) -> dict[str, list[pulumi.Input[str]]]:
    """The addresses that each node has, and its certificate may name, by full name."""
    return {
        node.fqdn: [machine.public_ipv4, machine.private_ipv4, *filter(None, [machine.ipv6])]
        for node, machine in machines.items()
    }


class LastingMachine(Machine, Protocol):
    """A machine that stays."""

    ordered: pulumi.Output[MachineOrder] | None
    """What it was ordered as, and is until it is replaced, whatever the settings say; None where nothing is ordered.
    Known in previews too, and of no resource: what takes it does not wait in vain for a machine that is not there yet.
    """

    def neighbours(self) -> pulumi.Output[Sequence[BgpNeighbour]]:
        """The BGP neighbours that it may announce addresses to; secret. None where the platform has no BGP. Only for a
        machine that was declared to announce."""
        ...


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """IPv4 addresses that are routed to whichever machines announce them."""

    first: pulumi.Output[str]
    """The first address, without prefix length."""
    cidr: pulumi.Output[str]
    """All of them."""


class Platform(Protocol):
    """Where machines come from."""

    kind: str
    """What our own provider calls it: `equinix-metal`, `redfish`."""
    ephemeral_kind: str
    """The same, of the machine that does not last: `equinix-metal`, `redfish`, `local-vm`."""
    metadata_url: str | None
    """Where a machine reads what the platform says of it, BGP neighbours included; None where it has no metadata."""
    delivers_user_data: bool
    """Whether the platform boots a machine by itself once it is declared, from the URL of an iPXE script, and hands it
    its userdata. Else scripts are files of the boot server, and what the userdata would say is part of what they boot.
    """
    reserved: Mapping[str, Reserved]
    """The addresses that were ordered, by the names of their orders; empty where the platform reserves none."""
    shared: Mapping[str, pulumi.Input[Any]]
    """What the machines of other stacks of the cluster need of it, by name: outputs of the stack; nothing secret."""

    def network_files(self, node: Node) -> pulumi.Output[list[NodeFile]] | None:
        """What a machine's system must be told of networks that DHCP does not tell of; None where there is nothing."""
        ...

    def machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> LastingMachine:
        """Declare a machine that stays; `name` is its Pulumi name."""
        ...

    def ephemeral_machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> Machine:
        """Declare a machine that a Removal will delete within the same `up`."""
        ...
