"""SpotMachine: the machine that a spot market request has got.

The request itself is a resource of the official Equinix provider. That provider can also wait for a request's machine,
but when it deletes a request whose machine was evicted, it waits until it fails. So this provider waits instead.

Life cycle: create waits until the request has an active machine. In each run the program passes the ids of the
request's machines. If ours is not among them, it was evicted or deleted: update continues with the request's new
machine, or says that there is none. read keeps the last known machine, and the next up notices a change. delete ends
the request, so that it gets no other machine, and waits until its machines are gone.

Killed at any moment: the request is in the state before this resource waits for its machine, so the next create
continues to wait.
"""

from __future__ import annotations

from typing import Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.ephemeral_machine import machine_outputs, remove_machine
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.platforms.contract import Machine
from metal_ipi.provider.platforms.equinix_metal.driver import EquinixMetal
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes
from metal_ipi.provider.resources.spot_machine import SpotMachineArgs
from metal_ipi.provider.values import UNKNOWN, Unknown

_COMPUTED = ("machineId", "publicIpv4", "privateIpv4", "publicIpv6", "console", "bond")
_LONGEST_PAUSE = 5.0


class SpotMachine(ResourceType):
    """The machine of a spot market request."""

    token = "metal-ipi:index:SpotMachine"  # noqa: S105 - a type token
    inputs = SpotMachineArgs

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        changed = simple_changes(old, new, ("requestId",), replace=frozenset({"requestId"}))
        if changed.changes or isinstance(new.get("machineIds"), Unknown):
            return changed
        present = old.get("machineId") in (new.get("machineIds") or ())
        return Changes(changes={} if present else {"machineIds": "update"})

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        return dict.fromkeys(_COMPUTED, UNKNOWN)

    async def create(self, context: Context, inputs: Values) -> Made:
        async with _open(context) as driver:
            machine = await _wait(context, driver, SpotMachineArgs.read(inputs), patient=True)
        return Made(id=machine.id, outputs=_outputs(machine))

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        async with _open(context) as driver:
            machine = await _wait(context, driver, SpotMachineArgs.read(new), patient=False)
        if machine.id != old.get("machineId"):
            await context.status.remark(f"{new['hostname']} was terminated; continues with its successor {machine.id}")
        return _outputs(machine)

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        given = SpotMachineArgs.of_state(old)
        async with _open(context) as driver:
            machines = await driver.spot_machines(given.request_id)
            await driver.end_spot_request(given.request_id)
            for machine_id in {str(old["machineId"]), *(machines or ())}:
                await remove_machine(context, driver, machine_id, timeout=given.timeout_seconds)


async def _wait(context: Context, driver: EquinixMetal, given: SpotMachineArgs, *, patient: bool) -> Machine:
    """Waits for the request's active machine. `patient`: also if the request has no machine yet; else that is an
    error."""
    hostname, request_id = given.hostname, given.request_id
    backoff = Backoff(timeout=given.timeout_seconds, longest=_LONGEST_PAUSE)
    last: Machine | None = None
    while True:
        machines = await driver.spot_machines(request_id)
        if machines is None:
            raise ProviderError(
                f"the spot market request of {hostname} ({request_id}) is gone: run `pulumi refresh` (`make refresh`), "
                "and the next up makes another"
            )
        found = [machine for each in machines if (machine := await driver.get(each)) and not machine.leaving]
        last = found[0] if found else None
        if last is not None and last.ready:
            return last
        if last is None and not patient:
            raise ProviderError(
                f"{hostname} was terminated, and its spot market request ({request_id}) has no other machine: the "
                "market price is higher than platform.spot.maxPrice, or there is no machine. `make up "
                f"REPLACE={hostname}` makes a new request"
            )
        if last is not None and last.state == "failed":
            raise ProviderError(
                f"{hostname} ({last.id}) failed to provision: `make up REPLACE={hostname}` orders another"
            )
        seen = "no machine" if last is None else f"machine {last.id}, which is {last.state}"
        too_long = ProviderError(
            f"the spot market request of {hostname} ({request_id}) has {seen} after {backoff.elapsed:.0f} s; it is "
            "kept, and the next `up` continues to wait. The market price may be higher than platform.spot.maxPrice, "
            "or there may be no machine"
        )
        state = "no machine yet" if last is None else last.state
        await backoff.wait_for(f"{hostname} from the spot market ({state})", context.status.live, too_long)


def _outputs(machine: Machine) -> dict[str, Any]:
    return {**machine_outputs(machine), "bond": machine.bond}


def _open(context: Context) -> EquinixMetal:
    return EquinixMetal(context.settings.need_metal())
