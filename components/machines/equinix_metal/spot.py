"""A worker from the spot market: a request for one machine, and the machine that it gets."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from metal_ipi.components.machines.contract import BgpNeighbour, MachineArgs
from metal_ipi.components.machines.equinix_metal.machine import bgp_neighbours, bgp_session
from metal_ipi.components.machines.equinix_metal.orders import BILLING, request_order
from metal_ipi.components.machines.equinix_metal.sdk import metal
from metal_ipi.components.machines.equinix_metal.shared import Project
from metal_ipi.provider.types import MachineOrder, SpotMachine, SpotMachineArgs

_REQUEST = "equinix-metal:index/getSpotMarketRequest:getSpotMarketRequest"
# None of these can be changed: a change would exchange the machine for another one.
_KEPT = ["maxBidPrice", "metro", "facilities", "projectId"]
_PARAMETERS = "instanceParameters"
# Parameters that are also ignored for a disposable machine, which is replaced when its userdata changes.
_KEPT_PARAMETERS = ["plan", "projectSshKeys", "ipxeScriptUrl", "customdata"]


class SpotMetalMachine(pulumi.ComponentResource):
    """A worker from the spot market. Each machine has a request of its own, so that it has its own name and userdata.

    The request does not wait for its machine (`waitForDevices`). With waiting, a request whose machine was taken away
    could not be deleted any more, because the official provider waits for a machine before deletion too.
    """

    def __init__(
        self,
        name: str,
        args: MachineArgs,
        project: Project,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("metal-ipi:machines:SpotMetalMachine", name, None, opts)
        order, networks = project.orders[args.node.role], project.networks
        assert order.spot_max_price is not None, "it is ordered at a price"
        own = pulumi.ResourceOptions(parent=self)
        request = metal.SpotMarketRequest(
            f"{name}-request",
            devices_min=1,
            devices_max=1,
            max_bid_price=order.spot_max_price,
            metro=project.metro,
            facilities=project.facilities,
            project_id=project.id,
            wait_for_devices=False,
            instance_parameters=metal.SpotMarketRequestInstanceParametersArgs(
                hostname=args.node.hostname,
                plan=order.plan,
                operating_system=order.operating_system,
                billing_cycle=BILLING,
                project_ssh_keys=project.ssh_key_ids,
                ipxe_script_url=args.boot.ipxe_script_url,
                always_pxe=args.boot.always_pxe,
                userdata=args.boot.user_data,
                customdata=project.custom_data,
                tags=project.tags(args),
            ),
            opts=pulumi.ResourceOptions(
                delete_before_replace=True,
                ignore_changes=[*_KEPT, *(_kept_parameters(disposable=args.disposable))],
                parent=self,
                depends_on=[*networks.of(args.node.role), *args.boot.before],
            ),
        )
        answer = pulumi.runtime.invoke_output(
            _REQUEST,
            {"requestId": request.id},
            pulumi.InvokeOutputOptions(parent=self),
            typ=metal.GetSpotMarketRequestResult,
        )
        machine = SpotMachine(
            f"{name}-machine",
            SpotMachineArgs(
                request_id=request.id,
                machine_ids=answer.apply(lambda found: list(found.device_ids or ())),
                hostname=args.node.hostname,
                timeout_seconds=args.timeout,
            ),
            pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        self._session = bgp_session(name, args, machine.machine_id, own)
        networks.attach(name, args.node.role, machine.bond, machine, resets=False, opts=own)
        self.resource: pulumi.Resource = machine
        self.ordered: pulumi.Output[MachineOrder] | None = request_order(order, request)
        self.machine_id = machine.machine_id
        self.public_ipv4 = machine.public_ipv4
        self.private_ipv4 = machine.private_ipv4
        self.public_ipv6 = machine.public_ipv6
        self.ipv6: str | None = None
        self.console = pulumi.Output.concat(machine.machine_id, "@", machine.console)
        self.register_outputs({"machineId": self.machine_id, "publicIpv4": self.public_ipv4})

    def neighbours(self) -> pulumi.Output[Sequence[BgpNeighbour]]:
        """See `LastingMachine`."""
        return bgp_neighbours(self.machine_id, self._session, pulumi.InvokeOutputOptions(parent=self))


def _kept_parameters(*, disposable: bool) -> list[str]:
    """The parameters of an existing request whose changes are ignored."""
    return [f"{_PARAMETERS}.{name}" for name in _KEPT_PARAMETERS] if disposable else [_PARAMETERS]
