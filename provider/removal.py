"""Removal: removes an ephemeral machine, its DNS values and its files, once they are no longer needed.

The order matters. First DNS names and announced addresses, so that no client uses the machine any more. Then, after
`drainSeconds`, the machine; the removal waits until the platform no longer knows it, because it is billed until then.
The files last.

Life cycle: create removes; update removes what is newly named, or everything again if a trigger changed; read returns
the state unchanged; delete does nothing, because nothing was created.

Killed at any moment: the next run does all steps again; steps that are done already have no effect.
"""

from __future__ import annotations

from typing import Any

from metal_ipi.provider import backoff
from metal_ipi.provider.artifact_stores import open_store, persistently
from metal_ipi.provider.dns_records import records_of, withdraw
from metal_ipi.provider.ephemeral_machine import remove_machine
from metal_ipi.provider.platforms.registry import open_driver
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes, time_now
from metal_ipi.provider.resources.removal import RemovalArgs
from metal_ipi.provider.values import UNKNOWN

_WHAT = ("machineId", "platform", "records", "artifactsDirectory", "artifactsFiles")
_INPUTS = (*_WHAT, "drainSeconds", "triggers", "timeoutSeconds")


class Removal(ResourceType):
    """Removes an ephemeral machine, its DNS values and its files."""

    token = "metal-ipi:index:Removal"  # noqa: S105 - a type token
    inputs = RemovalArgs

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        return simple_changes(old, new, _INPUTS)

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        return {"removedAt": UNKNOWN}

    async def create(self, context: Context, inputs: Values) -> Made:
        await _remove(context, RemovalArgs.read(inputs))
        return Made(id=context.identity, outputs=_now())

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        if old.get("triggers") != new.get("triggers"):
            await _remove(context, RemovalArgs.read(new))
            return _now()
        fresh = _fresh(old, new)
        if not fresh:
            return {"removedAt": old["removedAt"]}
        kept = {key: new.get(key) for key in ("drainSeconds", "timeoutSeconds")}
        await _remove(context, RemovalArgs.read({**fresh, **kept}))
        return _now()


def _now() -> Values:
    return {"removedAt": time_now()}


def _fresh(old: Values, new: Values) -> dict[str, Any]:
    """The things to remove that the old state does not name yet."""
    fresh: dict[str, Any] = {}
    if new.get("machineId") != old.get("machineId") and new.get("machineId"):
        fresh |= {"machineId": new["machineId"], "platform": new.get("platform")}
    records = [record for record in new.get("records") or [] if record not in (old.get("records") or [])]
    if records:
        fresh["records"] = records
    moved = new.get("artifactsDirectory") != old.get("artifactsDirectory")
    known = () if moved else (old.get("artifactsFiles") or ())
    files = [name for name in new.get("artifactsFiles") or () if name not in known]
    if files and new.get("artifactsDirectory"):
        fresh |= {"artifactsDirectory": new["artifactsDirectory"], "artifactsFiles": files}
    return fresh


async def _remove(context: Context, given: RemovalArgs) -> None:
    for zone in sorted({record.zone.lower() for record in given.records}):
        await context.status.live(f"withdrawing records of zone {zone}")
        inside = [record.to_wire() for record in given.records if record.zone.lower() == zone]
        await withdraw(context, zone, records_of(inside))
    if given.machine_id:
        async with open_driver(given.platform, context.settings, context.status) as driver:
            if driver.bgp is not None:
                await driver.bgp.close_bgp(given.machine_id)
    drain = given.drain_seconds
    if given.records and drain:
        await context.status.live(f"waiting {drain:g} s for resolvers to forget {len(given.records)} records")
        await backoff.clock.sleep(drain)
    if given.machine_id:
        async with open_driver(given.platform, context.settings, context.status) as driver:
            await remove_machine(context, driver, given.machine_id, timeout=given.timeout_seconds)
    directory, files = given.artifacts_directory, given.artifacts_files
    if directory and files:
        store = open_store(context.settings.need_artifacts())
        await persistently(lambda: store.delete(directory, files), context.status.live)
