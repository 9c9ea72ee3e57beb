"""A permanent machine: a device of the project."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from metal_ipi.components.machines.contract import BgpNeighbour, MachineArgs
from metal_ipi.components.machines.equinix_metal.networks import bond_of
from metal_ipi.components.machines.equinix_metal.orders import BILLING, device_order, subnets
from metal_ipi.components.machines.equinix_metal.sdk import metal
from metal_ipi.components.machines.equinix_metal.shared import Project
from metal_ipi.components.machines.former import of_component
from metal_ipi.provider.types import MachineOrder

_NEIGHBOURS = "equinix-metal:index/getDeviceBgpNeighbors:getDeviceBgpNeighbors"
# Changes of these inputs are ignored once a machine exists. Acting on them would re-install or re-order all machines at
# once, etcd included, or is not possible at all. A machine that is replaced by name gets the current values. Only for a
# disposable machine, changed userdata replaces it.
_USER_DATA = "userData"
_KEPT = ["plan", "metro", "facilities", "operatingSystem", "projectId", "projectSshKeyIds",
         "hardwareReservationId", "terminationTime", "customData", "ipAddresses"]  # fmt: skip


class EquinixMetalMachine:
    """A device of the project, on demand or on a reserved server."""

    def __init__(self, name: str, args: MachineArgs, project: Project, opts: pulumi.ResourceOptions) -> None:
        own = of_component("metal-ipi:machines:EquinixMetalMachine", name, opts)
        order, networks = project.orders[args.node.role], project.networks
        reservation = order.reservation(args.node.hostname)
        device = metal.Device(
            f"{name}-device",
            hostname=args.node.hostname,
            plan=order.plan,
            metro=project.metro,
            # The SDK's type lists only some facilities.
            facilities=project.facilities,  # pyright: ignore[reportArgumentType]
            operating_system=order.operating_system,
            billing_cycle=BILLING,
            project_id=project.id,
            project_ssh_key_ids=project.ssh_key_ids,
            ipxe_script_url=args.boot.ipxe_script_url,
            always_pxe=args.boot.always_pxe,
            user_data=args.boot.user_data,
            custom_data=project.custom_data,
            termination_time=project.ends_at,
            ip_addresses=subnets(order),
            hardware_reservation_id=reservation,
            # Otherwise the replacement could not get the reserved server.
            wait_for_reservation_deprovision=True if reservation else None,
            tags=project.tags(args),
            opts=pulumi.ResourceOptions.merge(
                own,
                pulumi.ResourceOptions(
                    delete_before_replace=True,
                    ignore_changes=_KEPT if args.disposable else [_USER_DATA, *_KEPT],
                    custom_timeouts=pulumi.CustomTimeouts(create=f"{args.timeout}s"),
                    # A VLAN can be deleted only when no machine is in it.
                    depends_on=[*networks.of(args.node.role), *args.boot.before],
                ),
            ),
        )
        self._session = bgp_session(name, args, device.id, own)
        if networks.of(args.node.role):
            networks.attach(name, args.node.role, bond_of(device), device, resets=True, opts=own)
        self.resource: pulumi.Resource = device
        self.ordered: pulumi.Output[MachineOrder] | None = device_order(order, device)
        self.machine_id = device.id
        self.public_ipv4 = device.access_public_ipv4
        self.private_ipv4 = device.access_private_ipv4
        self.public_ipv6 = device.access_public_ipv6
        self.ipv6: str | None = None
        self.console = pulumi.Output.concat(device.id, "@sos.", device.deployed_facility, ".platformequinix.com")
        self._asks = pulumi.InvokeOutputOptions(parent=opts.parent, provider=opts.provider)

    def neighbours(self) -> pulumi.Output[Sequence[BgpNeighbour]]:
        """See `LastingMachine`."""
        return bgp_neighbours(self.machine_id, self._session, self._asks)


def bgp_session(
    name: str, args: MachineArgs, device: pulumi.Output[str], opts: pulumi.ResourceOptions
) -> metal.BgpSession | None:
    """A device's BGP session; None if it announces nothing."""
    if not args.announces:
        return None
    return metal.BgpSession(
        f"{name}-bgp",
        device_id=device,
        address_family="ipv4",
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True)),
    )


def bgp_neighbours(
    device: pulumi.Output[str], session: metal.BgpSession | None, opts: pulumi.InvokeOutputOptions
) -> pulumi.Output[Sequence[BgpNeighbour]]:
    """A device's BGP neighbours, asked from Metal in each run, so that no state stores the password and a new one is
    noticed.

    The SDK's own function is not used: it runs the event loop recursively for each machine that waits for an answer.
    """
    assert session is not None, "it announces nothing"
    answer = pulumi.runtime.invoke_output(
        _NEIGHBOURS,
        {"deviceId": device},
        pulumi.InvokeOutputOptions.merge(opts, pulumi.InvokeOutputOptions(depends_on=[session])),
        typ=metal.GetDeviceBgpNeighborsResult,
    )
    return pulumi.Output.secret(answer.apply(_neighbours))


def _neighbours(answer: metal.GetDeviceBgpNeighborsResult) -> Sequence[BgpNeighbour]:
    return [
        BgpNeighbour(
            customer_as=each.customer_as,
            customer_ip=each.customer_ip,
            peer_as=each.peer_as,
            peer_ips=tuple(each.peer_ips or ()),
            md5_password=each.md5_password if each.md5_enabled else None,
            multihop=each.multihop,
        )
        for each in answer.bgp_neighbors
    ]
