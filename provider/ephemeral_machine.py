"""EphemeralMachine: the bootstrap machine, which a `Removal` deletes within the same up.

The platform's driver decides how a machine is made, and how it is found again after a crash: an ordered machine has
tags; a lent server or a virtual machine is identified by its boot script, which is withdrawn when the machine is given
back.

Life cycle:

- create looks for a machine of an earlier run and takes it over, or makes one, and waits until it is active;
- update: changed inputs do not change the machine; they apply to the next installation. Only while the machine is
  `disposable`, and booted something else than the inputs say now, update deletes it and makes another one. The resource
  is not replaced, so the `Removal` still refers to it;
- read reports a missing machine as `present: false`, so a later up does nothing;
- delete waits until the machine is gone; a missing machine is not an error.

Killed before the order: nothing exists. Killed between order and state: the next create finds the machine, or repeats
steps that can be repeated. A machine that did not become active in time stays in the state, and the next up continues
to wait; a machine that failed is kept for inspection, and the next up deletes it and orders another one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import InitFailed, ProviderError
from metal_ipi.provider.inputs import Problem
from metal_ipi.provider.platforms.contract import Machine, MachineDriver
from metal_ipi.provider.platforms.registry import PLATFORMS, open_driver
from metal_ipi.provider.resource import Changes, Context, Kind, Made, ResourceType, Values
from metal_ipi.provider.resources.ephemeral_machine import MachineArgs, args_of
from metal_ipi.provider.values import UNKNOWN

_COMPUTED = ("machineId", "publicIpv4", "privateIpv4", "publicIpv6", "console", "present", "state", "announces")
_LONGEST_PAUSE = 5.0
_BOOTED = ("userData", "script")
"""The inputs that determine what it boots."""


class EphemeralMachine(ResourceType):
    """A machine that is removed within the same up, and is not made again."""

    token = "metal-ipi:index:EphemeralMachine"  # noqa: S105 - a type token

    inputs = MachineArgs

    def check(self, inputs: Values) -> list[Problem]:
        return args_of(inputs).problems(inputs)

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        changes: dict[str, Kind] = {"state": "update"} if _unfinished(old, new) else {}
        changes.update(dict.fromkeys(_outdated(old, new), "update"))
        return Changes(changes=changes)

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        if old is None or _outdated(old, new):
            known = {"present": True, "state": "active", "announces": bool(new.get("bgp"))}
            return {**dict.fromkeys(_COMPUTED, UNKNOWN), **known}
        return {key: old.get(key) for key in _COMPUTED}

    async def create(self, context: Context, inputs: Values) -> Made:
        spec = args_of(inputs).read(inputs)
        async with _open(context, inputs) as driver:
            machine = await _take_over(context, driver, spec, timeout=_timeout(inputs))
            if machine is None:
                await context.status.live(f"ordering {spec.hostname}")
                machine = await driver.create(spec)
            return Made(id=machine.id, outputs=await _finish(context, driver, machine, inputs))

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        outdated = _outdated(old, new)
        if not outdated and not _unfinished(old, new):
            return {key: old.get(key) for key in _COMPUTED}
        spec = args_of(new).read(new)
        async with _open(context, new) as driver:
            machine = await driver.get(old["machineId"])
            if outdated or machine is None or machine.leaving or machine.state == "failed":
                if machine is not None:
                    await remove_machine(context, driver, machine.id, timeout=_timeout(new))
                machine = await _take_over(context, driver, spec, timeout=_timeout(new)) or await driver.create(spec)
            return await _finish(context, driver, machine, new)

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        async with _open(context, old) as driver:
            machine = await driver.get(old["machineId"])
        if machine is None or machine.leaving:
            return {"present": False}
        return _outputs(_addressed(machine, old), announces=bool(old.get("announces")))

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        async with _open(context, old) as driver:
            await remove_machine(context, driver, old["machineId"], timeout=_timeout(old))


async def remove_machine(context: Context, driver: MachineDriver[Any], machine_id: str, *, timeout: float) -> None:
    """Delete a machine, and wait until the platform no longer knows it. Raises ProviderError when the time is up."""
    machine = await driver.get(machine_id)
    if machine is None or not machine.leaving:
        await driver.delete(machine_id)  # a machine that disappeared on its own may have left something behind
    backoff = Backoff(timeout=timeout, longest=_LONGEST_PAUSE)
    while machine := await driver.get(machine_id):
        too_long = ProviderError(
            f"machine {machine.hostname} ({machine_id}) is still {machine.state} {timeout:g} s after its deletion was "
            "requested; run the same command again to continue to wait"
        )
        await backoff.wait_for(f"{machine.hostname} to be gone ({machine.state})", context.status.live, too_long)


async def _take_over(
    context: Context, driver: MachineDriver[Any], spec: MachineArgs, *, timeout: float
) -> Machine | None:
    """A machine that an earlier, killed run ordered; None if there is none.

    Others are deleted: failed machines, and those that booted something else than is wanted now, for example from
    assets that have been created again.
    """
    usable: Machine | None = None
    for machine in await driver.find(spec):
        if machine.state == "failed" or machine.outdated or usable is not None:
            await remove_machine(context, driver, machine.id, timeout=timeout)
        else:
            usable = machine
    if usable is not None:
        await context.status.remark(f"continues with {usable.hostname} ({usable.id}), which an earlier run ordered")
    return usable


async def _finish(context: Context, driver: MachineDriver[Any], machine: Machine, inputs: Values) -> Values:
    """Start the machine, enable BGP if wanted, and wait until it is active.

    An error from here on becomes InitFailed, so that the machine stays in the state.
    """
    timeout = _timeout(inputs)
    backoff = Backoff(timeout=timeout, longest=_LONGEST_PAUSE)
    last = _addressed(machine, inputs)
    announces = False
    try:
        await driver.start(machine.id)
        if inputs.get("bgp"):
            assert driver.bgp is not None, "only platforms with BGP support this input"
            await driver.bgp.open_bgp(machine.id)
            announces = True
        while not last.ready:
            if last.state == "failed":
                events = [event.text for event in await driver.events(last.id)][:5]
                events_text = "; ".join(events) or "no events"
                raise ProviderError(
                    f"machine {last.hostname} ({last.id}) failed to provision; the platform says: {events_text}. "
                    "The next up deletes it and orders another"
                )
            percent = "" if last.progress is None else f" {last.progress:.0f} %"
            too_long = ProviderError(
                f"machine {last.hostname} ({last.id}) is still {last.state} after {timeout:g} s; it is kept, and the "
                "next `up` continues to wait"
            )
            await backoff.wait_for(f"{last.hostname} ({last.state}{percent})", context.status.live, too_long)
            found = await driver.get(machine.id)
            if found is None:
                raise ProviderError(f"machine {last.hostname} ({last.id}) disappeared while it was being provisioned")
            last = _addressed(found, inputs)
    except BaseException as error:  # a cancellation must not lose the machine either
        message = str(error) or f"interrupted while {last.hostname} ({last.id}) was {last.state}"
        raise InitFailed(message, last.id, dict(_outputs(last, announces=announces))) from error
    return _outputs(last, announces=announces)


def _unfinished(old: Values, new: Values) -> bool:
    """Whether an earlier run did not finish it. A refresh forgets the error, but keeps these outputs."""
    if not old.get("present"):
        return False
    if old.get("bgp") and new.get("bgp") and not old.get("announces"):
        return True
    return old.get("state") in ("queued", "provisioning", "failed") or not old.get("publicIpv4")


def _outdated(old: Values, new: Values) -> tuple[str, ...]:
    """The inputs that differ from what an existing, disposable machine has booted."""
    if not new.get("disposable") or not old.get("present"):
        return ()
    return tuple(key for key in _BOOTED if (key in old or key in new) and old.get(key) != new.get(key))


def machine_outputs(machine: Machine) -> dict[str, Any]:
    """The outputs that all machine resources share."""
    return {
        "machineId": machine.id,
        "publicIpv4": machine.public_ipv4,
        "privateIpv4": machine.private_ipv4,
        "publicIpv6": machine.public_ipv6 or "",
        "console": machine.console,
    }


def _outputs(machine: Machine, *, announces: bool) -> Values:
    return {**machine_outputs(machine), "present": True, "state": machine.state, "announces": announces}


def _timeout(inputs: Values) -> float:
    return MachineArgs.of_state(inputs).timeout_seconds


def _platform(inputs: Values) -> str:
    return str(inputs.get("platform") or PLATFORMS[0])


def _open(context: Context, inputs: Values) -> MachineDriver[Any]:
    return open_driver(_platform(inputs), context.settings, context.status)


def _addressed(machine: Machine, inputs: Values) -> Machine:
    """The machine with the addresses from the inputs, if they are given."""
    if not inputs.get("publicIpv4"):
        return machine
    public = str(inputs["publicIpv4"])
    return replace(machine, public_ipv4=public, private_ipv4=str(inputs.get("privateIpv4") or public))
