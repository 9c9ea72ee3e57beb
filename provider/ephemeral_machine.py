"""EphemeralMachine: the bootstrap machine, which a `Removal` deletes within the same up.

Life cycle: create looks for a machine with the same stack and name tags and takes it over, else orders one, and waits
until it is active. Later changes of the inputs change nothing: they take effect on the next installation. read
reports a machine that is gone as still ours and absent, so a later up has nothing to do. delete is content with a
machine that is gone, and else waits until it is.
Killed before the order: nothing is there. Killed between order and state: the next create finds the machine by its
tags. A machine that did not become active in time stays in the state, and the next up waits on; one that failed is
kept for a look at it, and the next up deletes it and orders another.
"""

from __future__ import annotations

from provider.backoff import Backoff
from provider.errors import InitFailed, ProviderError
from provider.fields import URL, Problem, Reader
from provider.platforms import PLATFORMS, Machine, MachineDriver, MachineSpec, identifying, open_driver
from provider.resource import Changes, Context, Made, ResourceType, Values
from provider.values import UNKNOWN

_COMPUTED = ("machineId", "publicIpv4", "privateIpv4", "publicIpv6", "console", "present", "state", "announces")
_LONGEST_PAUSE = 5.0


class EphemeralMachine(ResourceType):
    """A machine that is removed within the same up, and stays gone."""

    token = "metal-ipi:index:EphemeralMachine"  # noqa: S105 - a type token

    def check(self, inputs: Values) -> list[Problem]:
        return _parse(inputs)[1].problems

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        return Changes(changes={"state": "update"} if _unfinished(old, new) else {})

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        if old is None:
            known = {"present": True, "state": "active", "announces": bool(new.get("bgp"))}
            return {**dict.fromkeys(_COMPUTED, UNKNOWN), **known}
        return {key: old.get(key) for key in _COMPUTED}

    async def create(self, context: Context, inputs: Values) -> Made:
        spec, reader = _parse(inputs)
        reader.raise_problems()
        async with open_driver(inputs.get("platform", PLATFORMS[0]), context.settings) as driver:
            machine = await _take_over(context, driver, spec, timeout=_timeout(inputs))
            if machine is None:
                await context.status.live(f"ordering {spec.hostname}")
                machine = await driver.create(spec)
            return Made(id=machine.id, outputs=await _finish(context, driver, machine, inputs))

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        if not _unfinished(old, new):
            return {key: old.get(key) for key in _COMPUTED}
        spec, reader = _parse(new)
        reader.raise_problems()
        async with open_driver(new.get("platform", PLATFORMS[0]), context.settings) as driver:
            machine = await driver.get(old["machineId"])
            if machine is None or machine.leaving or machine.state == "failed":
                if machine is not None:
                    await remove_machine(context, driver, machine.id, timeout=_timeout(new))
                machine = await _take_over(context, driver, spec, timeout=_timeout(new)) or await driver.create(spec)
            return await _finish(context, driver, machine, new)

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        async with open_driver(old.get("platform", PLATFORMS[0]), context.settings) as driver:
            machine = await driver.get(old["machineId"])
        if machine is None or machine.leaving:
            return {"present": False}
        return _outputs(machine, announces=bool(old.get("announces")))

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        async with open_driver(old.get("platform", PLATFORMS[0]), context.settings) as driver:
            await remove_machine(context, driver, old["machineId"], timeout=_timeout(old))


async def remove_machine(context: Context, driver: MachineDriver, machine_id: str, *, timeout: float) -> None:
    """Deletes a machine and waits until the platform no longer knows it."""
    machine = await driver.get(machine_id)
    if machine is None:
        return
    if not machine.leaving:
        await driver.delete(machine_id)
    backoff = Backoff(timeout=timeout, longest=_LONGEST_PAUSE)
    while machine := await driver.get(machine_id):
        if backoff.over:
            raise ProviderError(
                f"machine {machine.hostname} ({machine_id}) is still {machine.state} {timeout:g} s after its deletion "
                "was asked for; run the same command again to wait on"
            )
        await context.status.live(
            f"waiting for {machine.hostname} to be gone ({machine.state}), {backoff.elapsed:.0f} s"
        )
        await backoff.pause()


async def _take_over(context: Context, driver: MachineDriver, spec: MachineSpec, *, timeout: float) -> Machine | None:
    """A machine that an earlier, killed run ordered. Failed ones are deleted: they will not become anything."""
    usable: Machine | None = None
    for machine in await driver.find(spec.project_id, spec.tags):
        if machine.state == "failed" or usable is not None:
            await remove_machine(context, driver, machine.id, timeout=timeout)
        else:
            usable = machine
    if usable is not None:
        await context.status.remark(f"goes on with {usable.hostname} ({usable.id}), ordered by an earlier run")
    return usable


async def _finish(context: Context, driver: MachineDriver, machine: Machine, inputs: Values) -> Values:
    """Lets it announce, where it is to, and waits until it is active.

    Whatever goes wrong from here on, the machine stays in the state.
    """
    timeout = _timeout(inputs)
    backoff = Backoff(timeout=timeout, longest=_LONGEST_PAUSE)
    last = machine
    announces = False
    try:
        if inputs.get("bgp"):
            await driver.open_bgp(machine.id)
            announces = True
        while not last.ready:
            if last.state == "failed":
                events = [event.text for event in await driver.events(last.id)][:5]
                told = "; ".join(events) or "no events"
                raise ProviderError(
                    f"machine {last.hostname} ({last.id}) failed to provision; the platform says: {told}. "
                    "The next up deletes it and orders another"
                )
            if backoff.over:
                raise ProviderError(
                    f"machine {last.hostname} ({last.id}) is still {last.state} after {timeout:g} s; it is kept, "
                    "and the next up waits on"
                )
            percent = "" if last.progress is None else f" {last.progress:.0f} %"
            await context.status.live(f"waiting for {last.hostname} ({last.state}{percent}), {backoff.elapsed:.0f} s")
            await backoff.pause()
            found = await driver.get(machine.id)
            if found is None:
                raise ProviderError(f"machine {last.hostname} ({last.id}) disappeared while it was being provisioned")
            last = found
    except BaseException as error:  # a cancellation too must not lose the machine
        message = str(error) or f"interrupted while {last.hostname} ({last.id}) was {last.state}"
        raise InitFailed(message, last.id, dict(_outputs(last, announces=announces))) from error
    return _outputs(last, announces=announces)


def _unfinished(old: Values, new: Values) -> bool:
    """Whether an earlier run did not see it become what it was to be. A refresh forgets the error, but not this."""
    if not old.get("present"):
        return False
    if old.get("bgp") and new.get("bgp") and not old.get("announces"):
        return True
    return old.get("state") in ("queued", "provisioning", "failed") or not old.get("publicIpv4")


def _outputs(machine: Machine, *, announces: bool) -> Values:
    return {
        "machineId": machine.id,
        "publicIpv4": machine.public_ipv4,
        "privateIpv4": machine.private_ipv4,
        "publicIpv6": machine.public_ipv6,
        "console": machine.console,
        "present": True,
        "state": machine.state,
        "announces": announces,
    }


def _timeout(inputs: Values) -> float:
    return float(inputs.get("timeoutSeconds") or 1800)


def _parse(inputs: Values) -> tuple[MachineSpec, Reader]:
    reader = Reader(inputs)
    reader.only("platform", "projectId", "hostname", "plan", "metro", "facilities", "operatingSystem", "ipxeScriptUrl",
                "alwaysPxe", "userData", "tags", "projectSshKeyIds", "timeoutSeconds", "bgp")  # fmt: skip
    reader.boolean("bgp")
    reader.text("platform", default=PLATFORMS[0], pattern="|".join(PLATFORMS), what="one of " + ", ".join(PLATFORMS))
    reader.number("timeoutSeconds", default=1800, minimum=1)
    spec = MachineSpec(
        project_id=reader.text("projectId"),
        hostname=reader.text("hostname", pattern=r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", what="a host name"),
        plan=reader.text("plan"),
        metro=reader.optional_text("metro"),
        facilities=reader.texts("facilities", required=False),
        operating_system=reader.text("operatingSystem", default="custom_ipxe"),
        ipxe_script_url=reader.optional_text("ipxeScriptUrl", pattern=URL, what="a URL"),
        always_pxe=reader.boolean("alwaysPxe"),
        user_data=reader.optional_text("userData"),
        tags=reader.texts("tags"),
        project_ssh_key_ids=reader.texts("projectSshKeyIds", required=False),
    )
    places = [key for key in ("metro", "facilities") if inputs.get(key) is not None]
    if len(places) != 1:
        reader.fail("metro", "or `facilities` must be given, and not both")
    tags = inputs.get("tags")
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) and len(identifying(spec.tags)) != 3:
        reader.fail(
            "tags",
            "must hold metal-ipi:stack=…, metal-ipi:cluster=… and metal-ipi:name=…: it is found by them after a crash",
        )
    return spec, reader
