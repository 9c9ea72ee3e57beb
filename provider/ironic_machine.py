"""IronicMachine: a server from Ironic, claimed for the cluster.

Life cycle: create claims the server. Your own server is first enrolled and made available; other servers must be
available already. Claiming boots nothing. update and read check the claim; an Ironic that does not answer is an error,
and never means that the server is gone. delete gives it back: the node is undeployed, and cleaned if Ironic is
configured so.

Killed while claiming: the allocation has a name by which the next create finds it, and so does a delete that knows only
the inputs. Killed while giving back: the next delete continues. A node that was allocated to somebody else since is
left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.platforms.contract import addresses
from metal_ipi.provider.platforms.ids import MachineId
from metal_ipi.provider.platforms.ironic import Ironic
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes
from metal_ipi.provider.resources.ironic_machine import IronicMachineArgs
from metal_ipi.provider.values import UNKNOWN

_FACTS = ("machineId", "driver", "resourceClass", "memoryMib", "disks", "nics")
_COMPARED = ("server", "hostname", "mac", "publicIpv4", "privateIpv4")


class IronicMachine(ResourceType):
    """A server from Ironic, claimed for the cluster."""

    token = "metal-ipi:index:IronicMachine"  # noqa: S105 - a type token
    inputs = IronicMachineArgs

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        return simple_changes(old, {**new, **addresses(new)}, _COMPARED, replace=frozenset({"server"}))

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        facts: dict[str, Any] = {key: UNKNOWN if old is None else old.get(key) for key in _FACTS}
        return {**facts, **addresses(new)}

    async def create(self, context: Context, inputs: Values) -> Made:
        given = IronicMachineArgs.read(inputs)
        await context.status.live(f"claiming {given.server}")
        async with _open(context, given) as driver:
            node = await driver.claim(given.server, accept=given.accept)
            outputs = await _outputs(driver, given.server, node, inputs)
            if outputs["nics"] and given.mac not in outputs["nics"]:
                await driver.give_back(outputs["machineId"])
                raise InvalidInputs(
                    f"{driver.nodes.where(node)} has no network interface with the MAC address {given.mac}, but "
                    f"{', '.join(outputs['nics'])}: correct its `mac`, or the node; the node was given back"
                )
        return Made(id=outputs["machineId"], outputs=outputs)

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        machine = MachineId.parse(old["machineId"])
        async with _open(context, IronicMachineArgs.read(new)) as driver:
            return await _outputs(driver, machine.server, await driver.nodes.need(machine.identity), new)

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        machine = MachineId.parse(old["machineId"])
        async with _open(context, IronicMachineArgs.of_state(old)) as driver:
            node = await driver.held(machine)
            return None if node is None else await _outputs(driver, machine.server, node, old)

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        await context.status.live(f"giving {old['server']} back")
        async with _open(context, IronicMachineArgs.of_state(old)) as driver:
            if "machineId" in old:
                await driver.give_back(old["machineId"])
            else:
                await driver.abandon(old["server"])


def _open(context: Context, given: IronicMachineArgs) -> Ironic:
    return Ironic(context.settings, context.status.live, timeout=given.timeout_seconds)


async def _outputs(driver: Ironic, server: str, node: Any, inputs: Values) -> Values:
    found = await driver.inventory(node)
    disks: list[Mapping[str, Any]] = found.get("disks") or []
    return {
        "machineId": str(MachineId(server=server, identity=node.id)),
        "driver": node.driver,
        "resourceClass": node.resource_class,
        "memoryMib": (found.get("memory") or {}).get("physical_mb"),
        "disks": [
            {
                wire: disk[key]
                for wire, key in (("name", "name"), ("sizeBytes", "size"), ("model", "model"), ("serial", "serial"))
                if disk.get(key) is not None
            }
            for disk in disks
        ],
        "nics": [str(nic["mac_address"]).lower() for nic in found.get("interfaces") or [] if nic.get("mac_address")],
        **addresses(inputs),
    }
