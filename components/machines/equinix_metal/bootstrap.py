"""The bootstrap machine: a device that our own provider orders, because it must be deleted within the same `up`."""

from __future__ import annotations

import pulumi

from metal_ipi.components.machines.contract import MachineArgs
from metal_ipi.components.machines.equinix_metal.shared import Project
from metal_ipi.provider.types import EphemeralMachine, EphemeralMachineArgs


class EphemeralMetalMachine:
    """A device that our provider orders."""

    def __init__(
        self, name: str, args: MachineArgs, project: Project, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        order = project.orders[args.node.role]
        machine = EphemeralMachine(
            name,
            EphemeralMachineArgs(
                platform="equinix-metal",
                hostname=args.node.hostname,
                plan=order.plan,
                metro=project.metro,
                facilities=project.facilities or (),
                operating_system=order.operating_system,
                project_id=project.id,
                project_ssh_key_ids=project.ssh_key_ids,
                ipxe_script_url=args.boot.ipxe_script_url,
                always_pxe=args.boot.always_pxe,
                user_data=args.boot.user_data,
                custom_data=project.custom_data,
                termination_time=project.ends_at,
                public_subnet=order.subnet_length,
                hardware_reservation_id=order.reservation(args.node.hostname),
                tags=project.tags(args),
                bgp=args.announces,
                disposable=args.disposable,
                timeout_seconds=args.timeout,
            ),
            # It is found by its tags: a second device with the same tags would be taken for the first.
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(delete_before_replace=True)),
        )
        self.resource: pulumi.Resource = machine
        self.machine_id = machine.machine_id
        self.public_ipv4 = machine.public_ipv4
        self.private_ipv4 = machine.private_ipv4
        self.public_ipv6 = machine.public_ipv6
        self.ipv6: str | None = None
        self.console = pulumi.Output.concat(machine.machine_id, "@", machine.console)
