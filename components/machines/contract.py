"""The interface between platforms and the rest of the program: what a machine is.

A platform declares permanent machines (`Platform.machine`) and the bootstrap machine (`Platform.ephemeral_machine`,
which our provider makes, because it is removed within the same `up`). The rest of the program never asks which platform
it is on. A new platform is one more folder here, in `stacks/platforms` and in `provider/platforms`
(docs/where-does-it-go.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pulumi

from metal_ipi.components.boot.ignition import NodeFile
from metal_ipi.components.machines.node import Node
from metal_ipi.components.waiting import coming_from
from metal_ipi.provider.types import MachineOrder, Secret


@dataclass(frozen=True, kw_only=True)
class Boot:
    """What a machine boots, and what configures it."""

    ipxe_script_url: pulumi.Input[str] | None = None
    """The http or https URL of the iPXE script; None if the platform does not pass it to the firmware."""
    user_data: pulumi.Input[str] | None = None
    """The Ignition pointer: JSON of URLs and hashes. It is secret: whoever knows the URLs can fetch the files. None if
    the platform delivers no userdata."""
    always_pxe: bool
    """Whether the machine boots from the network every time, because nothing is on its disk."""
    before: Sequence[pulumi.Resource] = ()
    """What the machine has to depend on because it fetches it: the URL and the userdata here need not come from it."""
    script: pulumi.Input[str] | None = None
    """The iPXE script itself, for a platform that does not pass URLs to the firmware; secret."""


@dataclass(frozen=True, kw_only=True)
class MachineArgs:
    """One machine."""

    node: Node
    """The node that the machine becomes."""
    boot: Boot
    """What it boots."""
    timeout: int
    """Seconds until the platform must report it as active."""
    announces: bool = False
    """Whether it announces addresses over BGP; the platform lists its neighbours in its metadata."""
    disposable: bool = False
    """Whether it holds no data to keep, so that it is replaced when what it boots changes."""


@dataclass(frozen=True, kw_only=True)
class BgpNeighbour:
    """A BGP neighbour of a machine, as the platform reports it (Metal: `GET /devices/<id>/bgp/neighbors`)."""

    customer_as: int
    """The machine's AS number."""
    customer_ip: str
    """The machine's source address for sessions; peers refuse sessions from another address."""
    peer_as: int
    """The peers' AS number."""
    peer_ips: tuple[str, ...]
    """The peers' addresses; the machine has a session with each."""
    md5_password: Secret[str] | None = field(default=None, repr=False)
    """The password of the sessions (TCP MD5, RFC 2385), a secret; None: no password."""
    multihop: bool = False
    """Whether the peers are more than one hop away."""


class Machine(Protocol):
    """A machine as the rest of the program sees it; the outputs are reported by the platform."""

    machine_id: pulumi.Output[str]
    """The platform's id of the machine."""
    public_ipv4: pulumi.Output[str]
    """The address at which it is reached, without prefix length."""
    private_ipv4: pulumi.Output[str]
    """The address within the facility, without prefix length."""
    public_ipv6: pulumi.Output[str]
    """Empty if the platform gives none."""
    ipv6: str | None
    """The additional IPv6 address that the cluster uses for it; known before the machine exists. None: IPv4 only."""
    console: pulumi.Output[str]
    """`user@host` of a serial console over SSH; empty if the platform has none."""

    @property
    def resource(self) -> pulumi.Resource:
        """The resource that other resources may depend on."""
        ...


def node_addresses(machines: Mapping[Node, Machine]) -> dict[str, list[pulumi.Input[str]]]:
    """The addresses of each node, by full name; its certificate may contain them. For gates, which depend on the
    machines in another way."""
    return {
        node.fqdn: [coming_from(machine.public_ipv4), coming_from(machine.private_ipv4), *filter(None, [machine.ipv6])]
        for node, machine in machines.items()
    }


class LastingMachine(Machine, Protocol):
    """A permanent machine."""

    ordered: pulumi.Output[MachineOrder] | None
    """The order with which the machine was made. It stays until the machine is replaced, even if settings change. None:
    the platform orders nothing.

    Known in previews too, and carries no dependency on a resource: its users do not wait for a machine that does not
    exist yet.
    """

    def neighbours(self) -> pulumi.Output[Sequence[BgpNeighbour]]:
        """The BGP neighbours to which it may announce addresses; secret. None if the platform has no BGP. Only for a
        machine that was declared with `announces`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """A block of IPv4 addresses that is routed to the machines that announce it."""

    first: pulumi.Output[str]
    """The first address, without prefix length."""
    cidr: pulumi.Output[str]
    """The whole block."""


class Platform(Protocol):
    """Where machines come from."""

    kind: str
    """Its name in our provider: `equinix-metal`, `redfish`, `ironic`."""
    ephemeral_kind: str
    """The name of the bootstrap machine's platform in our provider: `equinix-metal`, `redfish`, `local-vm`."""
    metadata_url: str | None
    """The URL of a machine's metadata, BGP neighbours included. None: the platform has no metadata service."""
    delivers_user_data: bool
    """Whether the platform boots a declared machine from the URL of an iPXE script, and delivers its userdata.

    If not, iPXE scripts are files on the boot server, and the userdata is part of what the machine boots.
    """
    reserved: Mapping[str, Reserved]
    """The ordered address blocks, by the names of their orders; empty if the platform reserves none."""
    shared: Mapping[str, pulumi.Input[Any]]
    """Outputs of the stack that the stacks of further pools need, by name. Not secret."""

    def network_files(self, node: Node) -> pulumi.Output[list[NodeFile]] | None:
        """Files that configure networks for which there is no DHCP; None if there are none."""
        ...

    def machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> LastingMachine:
        """Declare a permanent machine; `name` is its Pulumi name."""
        ...

    def ephemeral_machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> Machine:
        """Declare a machine that a Removal deletes within the same `up`."""
        ...
