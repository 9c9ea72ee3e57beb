"""The project, its keys and addresses, and which resource orders what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from metal_ipi.components.boot.ignition import NodeFile
from metal_ipi.components.machines.contract import LastingMachine, MachineArgs, Reserved
from metal_ipi.components.machines.equinix_metal.bootstrap import EphemeralMetalMachine
from metal_ipi.components.machines.equinix_metal.machine import EquinixMetalMachine
from metal_ipi.components.machines.equinix_metal.networks import Networks, VlanSpec
from metal_ipi.components.machines.equinix_metal.sdk import metal
from metal_ipi.components.machines.equinix_metal.shared import Project
from metal_ipi.components.machines.equinix_metal.spot import SpotMetalMachine
from metal_ipi.components.machines.node import Node
from metal_ipi.components.machines.tags import label, reservation_tags
from metal_ipi.provider.types import AddressOrder, Lifetime, MachineOrder

_STAYS = ["metro", "facility", "projectId"]
SSH_KEY_IDS = "sshKeyIds"
"""The key of `EquinixMetal.shared` with the ids of the SSH keys that machines are ordered with."""
_LOCAL_ASN = 65000
"""The AS number that Metal assigns to every project with local BGP."""


@dataclass(frozen=True, kw_only=True)
class EquinixMetalArgs:
    """A project, and what to order in it."""

    stack: str
    """The stack's name; part of every machine's tags."""
    cluster: str
    """The cluster's domain; part of every machine's tags."""
    run: pulumi.Input[str]
    """The id of this installation of the cluster; part of every machine's tags."""
    auth_token: pulumi.Input[str]
    """An API token; secret."""
    project_id: str | None
    """An existing project's id. None: create one."""
    project_name: str | None
    """The name of the project to create."""
    organization_id: str | None
    """The owner of the project to create."""
    metro: str | None
    """A metro code. None: `facilities` is given."""
    facilities: tuple[str, ...] = ()
    """Facility codes in order of preference. Empty: `metro` is given."""
    orders: Mapping[str, MachineOrder]
    """The order for the machines of each role."""
    addresses: Sequence[AddressOrder] = ()
    """The addresses to reserve."""
    lifetime_hours: int | None = None
    """Hours after which Metal deletes all machines. None: never."""
    custom_data: str | None = None
    """A JSON object that machines can read from their metadata."""
    tags: tuple[str, ...] = ()
    """Further tags of machines and reserved addresses."""
    networks: tuple[VlanSpec, ...] = ()
    """VLANs, and the roles whose machines are in them."""
    bond_interfaces: tuple[str, ...] = ()
    """Names, or glob patterns, of the interfaces that form the bond of a machine in VLANs."""
    ssh_public_key: pulumi.Input[str]
    """A public key for access to the serial consoles."""
    ssh_key_ids: pulumi.Output[list[str]] | None = None
    """The ids of the keys that another stack of the cluster created. None: create one from `ssh_public_key`."""
    after: Sequence[pulumi.Resource] = ()
    """Resources that must be complete before anything is ordered. Machines wait for them through their SSH key."""


class EquinixMetal(pulumi.ComponentResource):
    """The platform: project, SSH key, VLANs, and the machines that are ordered from it."""

    kind = ephemeral_kind = "equinix-metal"
    metadata_url: str | None = "https://metadata.packet.net/metadata"
    delivers_user_data = True
    project_id: pulumi.Output[str]
    """The project's id."""

    def __init__(self, name: str, args: EquinixMetalArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:machines:EquinixMetal", name, None, opts)
        self._args = args
        provider = metal.Provider(
            f"{name}-provider",
            auth_token=pulumi.Output.secret(args.auth_token),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self._child = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=list(args.after))
        self.project_id = self._project_of(name)
        ssh_key_ids = self._ssh_keys(name)
        own = pulumi.ResourceOptions(parent=self, depends_on=list(args.after))
        lifetime = Lifetime(f"{name}-lifetime", args.lifetime_hours, own) if args.lifetime_hours else None
        networks = Networks(
            name,
            args.networks,
            stack=args.stack,
            cluster=args.cluster,
            run=args.run,
            project_id=self.project_id,
            metro=args.metro,
            interfaces=args.bond_interfaces,
            opts=self._child,
        )
        self._project = Project(
            id=self.project_id,
            ssh_key_ids=ssh_key_ids,
            metro=args.metro,
            facilities=list(args.facilities) or None,
            orders=args.orders,
            networks=networks,
            custom_data=args.custom_data,
            ends_at=lifetime.ends_at if lifetime else None,
            stack=args.stack,
            cluster=args.cluster,
            run=args.run,
            further_tags=args.tags,
        )
        self.shared: Mapping[str, pulumi.Input[Any]] = {SSH_KEY_IDS: ssh_key_ids}
        self.reserved: Mapping[str, Reserved] = {order.name: self._reserve(order) for order in args.addresses}
        self.register_outputs({"projectId": self.project_id, "networks": networks.outline})

    def _project_of(self, name: str) -> pulumi.Output[str]:
        args = self._args
        if args.project_id is not None:
            return pulumi.Output.from_input(args.project_id)
        return metal.Project(
            f"{name}-project",
            name=args.project_name,
            organization_id=args.organization_id,
            # Always enabled: it costs nothing, and Metal cannot disable it again.
            bgp_config=metal.ProjectBgpConfigArgs(deployment_type="local", asn=_LOCAL_ASN),
            opts=self._child,
        ).id

    def _ssh_keys(self, name: str) -> pulumi.Input[Sequence[pulumi.Input[str]]]:
        args = self._args
        if args.ssh_key_ids is not None:
            # The keys exist already, but machines must still wait for `after`.
            return pulumi.Output.all(args.ssh_key_ids, *(each.urn for each in args.after)).apply(lambda found: found[0])
        key = metal.ProjectSshKey(
            f"{name}-ssh-key",
            name=label(stack=args.stack, cluster=args.cluster, run=args.run),
            project_id=self.project_id,
            public_key=args.ssh_public_key,
            opts=self._child,
        )
        return [key.id]

    def machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> LastingMachine:
        """Order a permanent machine."""
        if self._args.orders[args.node.role].spot_max_price is not None:
            return SpotMetalMachine(name, args, self._project, pulumi.ResourceOptions.merge(self._child, opts))
        own = pulumi.ResourceOptions(provider=self._child.provider)
        return EquinixMetalMachine(name, args, self._project, pulumi.ResourceOptions.merge(own, opts))

    def ephemeral_machine(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions) -> EphemeralMetalMachine:
        """Order the bootstrap machine, which is deleted within the same `up`; `opts` carries our own provider."""
        return EphemeralMetalMachine(name, args, self._project, opts)

    def network_files(self, node: Node) -> pulumi.Output[list[NodeFile]] | None:
        """Files that configure a machine's VLANs."""
        return self._project.networks.files(node)

    def _reserve(self, order: AddressOrder) -> Reserved:
        """Reserve public IPv4 addresses in the metro or facility; they are billed until they are released."""
        args = self._args
        block = metal.ReservedIpBlock(
            order.name,
            project_id=self.project_id,
            type="public_ipv4",
            quantity=order.quantity,
            metro=args.metro,
            facility=next(iter(args.facilities), None),
            tags=reservation_tags(
                stack=args.stack, cluster=args.cluster, name=order.name, run=args.run, further=args.tags
            ),
            # A reserved address never moves: machines there announce it and DNS refers to it; a released address is
            # lost.
            opts=pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(ignore_changes=_STAYS)),
        )
        return Reserved(first=block.network, cidr=block.cidr_notation)
