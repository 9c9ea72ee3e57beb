"""VLANs and gateways of a project, and the machines whose bonds are in them.

Metal calls a bond with VLANs on it hybrid-bonded: the machine keeps its addresses, and frames of each VLAN arrive
tagged. `Port` sets all VLANs of a bond at once and waits for each change. The alternatives do not fit:
`PortVlanAttachment` is one resource for each VLAN of each machine, and `DeviceNetworkType` has no hybrid bond
(metal/resource_metal_port.go, resource_metal_device_network_type.go of the official provider).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from metal_ipi.components.boot.bond import VlanInterface, bond_files
from metal_ipi.components.boot.ignition import NodeFile
from metal_ipi.components.machines.equinix_metal.sdk import metal
from metal_ipi.components.machines.node import Node, Role
from metal_ipi.components.machines.tags import label
from metal_ipi.provider.types import NetworkOrder

_BOND = "bond0"
_SUBNET = "equinix-metal:index/getReservedIpBlock:getReservedIpBlock"


@dataclass(frozen=True, kw_only=True)
class VlanSpec:
    """A VLAN, and the roles whose machines are in it."""

    order: NetworkOrder
    """Its name within the stack, its VLAN id, and the subnet of its machines' addresses (None: its gateway's
    subnet)."""
    text: str
    """A description for people."""
    roles: tuple[Role, ...]
    """Roles whose machines are in the VLAN."""
    first: dict[Role, int]
    """The index in the subnet of the address of each role's first machine."""

    def address(self, subnet: str, role: Role, place: int) -> str:
        """The address, with prefix length, of a role's machine number `place`.

        The first address is the gateway's, the last is the broadcast address. Control plane machines that find no room
        before the workers get addresses from the end of the subnet.
        """
        network, index, workers = ipaddress.IPv4Network(subnet), self.first[role] + place, self.first["worker"]
        if role == "control-plane" and index >= workers:
            index = workers - index - 2
        return f"{network[index]}/{network.prefixlen}"


class Networks:
    """The VLANs of a cluster."""

    def __init__(
        self,
        name: str,
        specs: Sequence[VlanSpec],
        *,
        stack: str,
        cluster: str,
        run: pulumi.Input[str],
        project_id: pulumi.Output[str],
        metro: str | None,
        interfaces: tuple[str, ...],
        opts: pulumi.ResourceOptions,
    ) -> None:
        self._specs, self._interfaces, self._opts = tuple(specs), interfaces, opts
        self._vlans: dict[str, metal.Vlan] = {}
        self._subnets: dict[str, pulumi.Output[str]] = {}
        self._gateways: dict[str, metal.Gateway] = {}
        for spec in self._specs:
            order = spec.order
            vlan = metal.Vlan(
                f"{name}-vlan-{order.name}",
                project_id=project_id,
                metro=metro,
                vxlan=order.vlan,
                description=label(stack=stack, cluster=cluster, run=run, name=order.name, text=spec.text),
                # Machines in the VLAN stay where they are, and a changed description must not replace it.
                opts=pulumi.ResourceOptions.merge(
                    opts, pulumi.ResourceOptions(ignore_changes=["metro", "projectId", "description"])
                ),
            )
            self._vlans[order.name] = vlan
            if order.subnet is not None:
                self._subnets[order.name] = pulumi.Output.from_input(order.subnet)
            elif order.gateway_size is not None:
                gateway = metal.Gateway(
                    f"{name}-gateway-{order.name}",
                    project_id=project_id,
                    vlan_id=vlan.id,
                    private_ipv4_subnet_size=order.gateway_size,
                    # A VLAN can have one gateway only.
                    opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True)),
                )
                self._gateways[order.name] = gateway
                self._subnets[order.name] = self._subnet_of(gateway)

    @property
    def outline(self) -> dict[str, dict[str, pulumi.Input[str] | list[str]]]:
        """For pictures, by the VLAN's name: the roles in it, its subnet, and the URNs of the VLAN and the gateway."""
        return {
            spec.order.name: {
                "roles": list[str](spec.roles),
                "subnet": self._subnets.get(spec.order.name, ""),
                "vlan": self._vlans[spec.order.name].urn,
                "gateway": gateway.urn if (gateway := self._gateways.get(spec.order.name)) else "",
            }
            for spec in self._specs
        }

    def of(self, role: Role) -> list[metal.Vlan]:
        """The VLANs that a role's machines are in."""
        return [self._vlans[spec.order.name] for spec in self._specs if role in spec.roles]

    def attach(
        self,
        name: str,
        role: Role,
        bond: pulumi.Input[str],
        machine: pulumi.Resource,
        *,
        resets: bool,
        opts: pulumi.ResourceOptions,
    ) -> metal.Port | None:
        """Put a machine's bond into the VLANs of its role; None if the role has no VLANs.

        Args:
            resets: whether the bond leaves the VLANs when only this resource is deleted. The official provider fails if
                the port is gone, so this must be False for a machine that may disappear on its own.
        """
        vlans = self.of(role)
        if not vlans:
            return None
        return metal.Port(
            f"{name}-bond",
            port_id=bond,
            bonded=True,
            layer2=False,
            vlan_ids=[vlan.id for vlan in vlans],
            reset_on_delete=resets,
            opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(deleted_with=machine)),
        )

    def files(self, node: Node) -> pulumi.Output[list[NodeFile]] | None:
        """The keyfiles for a machine's addresses in its VLANs; None if it has none."""
        specs = [spec for spec in self._specs if node.role in spec.roles and spec.order.name in self._subnets]
        if not specs:
            return None
        place = node.number

        def render(subnets: list[str]) -> list[NodeFile]:
            vlans = [
                VlanInterface(
                    name=spec.order.name, vlan=spec.order.vlan or 0, address=spec.address(subnet, node.role, place)
                )
                for spec, subnet in zip(specs, subnets, strict=True)
            ]
            return bond_files(vlans, self._interfaces)

        return pulumi.Output.all(*(self._subnets[spec.order.name] for spec in specs)).apply(render)

    def _subnet_of(self, gateway: metal.Gateway) -> pulumi.Output[str]:
        """The private subnet of a gateway, asked from Metal in each run."""
        # In a preview the provider takes an unset subnet id as known, so depend on the gateway's id, which is unknown
        # then.
        subnet = pulumi.Output.all(gateway.id, gateway.ip_reservation_id).apply(lambda ids: ids[1])
        answer = pulumi.runtime.invoke_output(
            _SUBNET,
            {"id": subnet},
            pulumi.InvokeOutputOptions(parent=self._opts.parent, provider=self._opts.provider),
            typ=metal.GetReservedIpBlockResult,
        )
        return answer.apply(lambda found: str(found.cidr_notation))


def bond_of(device: metal.Device) -> pulumi.Output[str]:
    """The id of the port that bonds a device's interfaces. Raises ValueError if it has no such port."""

    def bond(ports: Sequence[metal.outputs.DevicePort]) -> str:
        found = next((port.id for port in ports if port.name == _BOND), None)
        if found is None:
            known = ", ".join(str(port.name) for port in ports) or "none"
            raise ValueError(f"the machine has no port {_BOND} that could be added to a VLAN; it has: {known}")
        return str(found)

    return device.ports.apply(bond)
