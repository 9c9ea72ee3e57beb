"""Settings that all orders of machines share."""

from __future__ import annotations

import pulumi

from metal_ipi.components.machines.equinix_metal.sdk import metal
from metal_ipi.provider.types import MachineOrder

BILLING = "hourly"


def subnets(order: MachineOrder) -> list[metal.DeviceIpAddressArgs] | None:
    """A machine's IPv4 subnets, if its public subnet has another size. None: Metal's default, which adds an IPv6
    address."""
    if order.subnet_length is None:
        return None
    return [
        metal.DeviceIpAddressArgs(type="public_ipv4", cidr=order.subnet_length),
        metal.DeviceIpAddressArgs(type="private_ipv4"),
    ]


def device_order(order: MachineOrder, device: metal.Device) -> pulumi.Output[MachineOrder]:
    """See `LastingMachine.ordered`. `order` is the order in the settings, which applies to a machine that does not
    exist yet."""

    async def found() -> MachineOrder:
        if not await device.id.is_known():
            return order
        # A preview reports outputs that a machine does not have as unknown.
        plan, reservation = await device.plan.future(), await device.hardware_reservation_id.future()
        addresses = await device.ip_addresses.future()
        kept = order.reservations or (reservation,) if reservation else ()
        length = next((each["cidr"] for each in addresses or () if each["type"] == "public_ipv4"), None)
        return order.model_copy(update={"plan": plan or order.plan, "reservations": kept, "subnet_length": length})

    return pulumi.Output.from_input(found())


def request_order(order: MachineOrder, request: metal.SpotMarketRequest) -> pulumi.Output[MachineOrder]:
    """The same as `device_order` for a machine from the spot market. Plan and bid are not secret, although other
    parameters are."""

    async def found() -> MachineOrder:
        parameters, bid = await request.instance_parameters.future(), await request.max_bid_price.future()
        if not await request.id.is_known() or not parameters:
            return order
        return order.model_copy(update={"plan": parameters["plan"], "spot_max_price": bid})

    return pulumi.Output.from_input(found())
