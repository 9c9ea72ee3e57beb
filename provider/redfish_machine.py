"""RedfishMachine: a server with a BMC that is claimed for the cluster.

Life cycle: create reads the server's facts and checks that the claim is possible: the BMC has the expected certificate
and accepts the credentials, the server has the named network interface and enough memory, its firmware can boot what it
is to boot, and nothing runs on it. It does not boot the server: that happens after the claim, also for a server that is
lent first. So anything that runs on a newly claimed server is not ours, even if an old boot script of ours is still
published.

update checks again. read returns the current facts; a BMC that does not answer is an error, and never means that the
server is gone. delete switches the server off. All of them refuse if another server is behind the same address.

Killed while claiming: nothing was changed, and the next create claims. Killed while deleting: the next delete goes on.
"""

from __future__ import annotations

from typing import Any

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.platforms.contract import addresses
from metal_ipi.provider.platforms.ids import MachineId
from metal_ipi.provider.platforms.redfish import Inventory, Redfish, secure_boot
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes
from metal_ipi.provider.resources.redfish_machine import RedfishMachineArgs
from metal_ipi.provider.values import UNKNOWN

_FACTS = ("machineId", "serial", "manufacturer", "model", "biosVersion", "memoryMib", "disks", "nics", "bootMode",
          "console")  # fmt: skip
_COMPARED = ("server", "hostname", "mac", "publicIpv4", "privateIpv4", "minimumMemoryMib")


class RedfishMachine(ResourceType):
    """A server with a BMC, claimed for the cluster."""

    token = "metal-ipi:index:RedfishMachine"  # noqa: S105 - a type token
    inputs = RedfishMachineArgs

    def __init__(self) -> None:
        self._wanted: dict[str, str] = {}
        """Server name to the URN of the machine that uses it, as seen in this run: a server can be only one machine."""

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        self._want(context, new)
        return simple_changes(old, {**new, **addresses(new)}, _COMPARED, replace=frozenset({"server"}))

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        self._want(context, new)
        facts: dict[str, Any] = {key: UNKNOWN if old is None else old.get(key) for key in _FACTS}
        return {**facts, **addresses(new)}

    async def create(self, context: Context, inputs: Values) -> Made:
        self._want(context, inputs)
        given = RedfishMachineArgs.read(inputs)
        await context.status.live(f"looking at {given.server}")
        async with _open(context, given) as driver:
            found = await driver.inventory(given.server, macs=[given.mac])
        await self._check(context, found, given)
        found.check_free(accept=given.accept)
        secure_boot.refuse(found.where, found.secure_boot, context.settings.need_bmc(given.server))
        machine_id = str(MachineId(server=given.server, identity=found.identity))
        return Made(id=machine_id, outputs=_outputs(machine_id, found, inputs))

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        found = await _look(context, old)
        await self._check(context, found, RedfishMachineArgs.read(new))
        return _outputs(old["machineId"], found, new)

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        return _outputs(old["machineId"], await _look(context, old), old)

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        if old["server"] not in (context.settings.bmcs or {}):
            raise InvalidInputs(
                f"server {old['server']} cannot be switched off: it was removed from `bmcs` (`platform.servers`), and "
                "with it the access to its BMC. Add it again; or switch it off yourself, and remove it from the state: "
                f"pulumi state delete '{context.urn}'"
            )
        await context.status.live(f"switching {old['server']} off")
        async with _open(context, RedfishMachineArgs.of_state(old)) as driver:
            await driver.boot_disk(old["machineId"])
            await driver.power_off(old["machineId"])

    def _want(self, context: Context, inputs: Values) -> None:
        """Refuses a server that another machine of the stack uses."""
        server = inputs.get("server")
        if not isinstance(server, str):
            return
        for other in [name for name, urn in self._wanted.items() if urn == context.urn and name != server]:
            del self._wanted[other]
        urn = self._wanted.setdefault(server, context.urn)
        if urn != context.urn:
            raise InvalidInputs(
                f"server {server} is wanted twice: by {urn.rpartition('::')[2]} and by {context.name}; give each "
                "machine a server of its own"
            )

    async def _check(self, context: Context, found: Inventory, given: RedfishMachineArgs) -> None:
        found.check_mac(given.mac, context.settings.need_bmc(given.server))
        minimum = given.minimum_memory_mib or 0
        if found.memory_mib is not None and found.memory_mib < minimum:
            raise InvalidInputs(
                f"{found.where} has {found.memory_mib} MiB of memory, and needs {minimum:g}: take another server"
            )
        unknown = [
            what
            for what, known in (("interfaces", found.nics), ("memory", not minimum or found.memory_mib is not None))
            if not known
        ]
        if unknown:
            await context.status.remark(f"{found.where} does not report its {' and '.join(unknown)}: not checked")


def _open(context: Context, given: RedfishMachineArgs) -> Redfish:
    return Redfish(context.settings, context.status.remark, timeout=given.timeout_seconds)


async def _look(context: Context, old: Values) -> Inventory:
    machine = MachineId.parse(old["machineId"])
    given = RedfishMachineArgs.of_state(old)
    async with _open(context, given) as driver:
        return await driver.inventory(machine.server, machine.identity, macs=[given.mac])


def _outputs(machine_id: str, found: Inventory, inputs: Values) -> Values:
    return {
        "machineId": machine_id,
        "serial": found.serial,
        "manufacturer": found.manufacturer,
        "model": found.model,
        "biosVersion": found.bios_version,
        "memoryMib": found.memory_mib,
        "disks": [disk.to_wire() for disk in found.disks],
        "nics": list(found.nics),
        "bootMode": found.boot_mode,
        "console": found.console,
        **addresses(inputs),
    }
