"""The resource type; see the package."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from datetime import datetime, timezone

from provider.errors import InitFailed, ProviderError
from provider.fields import Problem
from provider.gates.logs import gather
from provider.installation import machine
from provider.installation.inputs import Job, job_of, parse
from provider.installation.install import Installer, Outcome, Pace
from provider.installation.machine import Installed
from provider.installation.remote import Opener, Remote, open_remote, withdraw_files
from provider.installation.reprovision import Reprovisioning, refuse_unconsented
from provider.installation.roll import Roll
from provider.platforms import open_driver
from provider.resource import Changes, Context, Kind, Made, ResourceType, Values, simple_changes
from provider.values import UNKNOWN, has_unknown

_COMPUTED = ("generation", "installedAt", "device", "via")
_ANOTHER = frozenset({"platform", "machineId", "hostname", "cluster"})
"""Inputs that make it another machine."""


class Installation(ResourceType):
    """A machine's operating system on its disk."""

    token = "metal-ipi:index:Installation"  # noqa: S105 - a type token

    def __init__(self, pace: Pace | None = None, opener: Opener = open_driver) -> None:
        self._pace, self._opener = pace or Pace(), opener
        self._rolls: dict[tuple[str, str], Roll] = defaultdict(
            lambda: Roll(gather=self._pace.gather, look=self._pace.look)
        )
        """The turns of each cluster's pools; a plugin lives as long as one update."""

    def check(self, inputs: Values) -> list[Problem]:
        return parse(inputs)[1].problems

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        found = simple_changes(old, new, tuple(sorted(_ANOTHER)), _ANOTHER)
        changes: dict[str, Kind] = dict(found.changes)
        if old.get("generation") != new.get("generation"):
            changes["generation"] = "update"
            was, runs = old.get("runs") or {}, new.get("runs")
            if isinstance(runs, dict):
                changes.update({f"runs.{key}": "update" for key in runs if runs[key] != was.get(key)})
        return Changes(changes=changes, replaces=found.replaces)

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        if old is not None and old.get("generation") == new.get("generation"):
            return {key: old.get(key) for key in _COMPUTED}
        known = not has_unknown([new.get(key) for key in ("generation", "role", "consent", "members")])
        if old is not None and old.get("generation") and known:
            refuse_unconsented(parse(new)[0])
        return {**dict.fromkeys(_COMPUTED, UNKNOWN), "generation": new.get("generation")}

    async def create(self, context: Context, inputs: Values) -> Made:
        identity = hashlib.sha256(context.urn.encode()).hexdigest()[:16]
        try:
            outputs = await self._install(context, job_of(inputs), again=False)
        except BaseException as error:  # after a cancellation too, what was published is to be found again
            message = str(error) or f"interrupted while {inputs['hostname']} was being installed"
            raise InitFailed(message, identity, {**dict.fromkeys(_COMPUTED), "generation": ""}) from error
        return Made(id=identity, outputs=outputs)

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        if old.get("generation") == new.get("generation"):
            return {key: old.get(key) for key in _COMPUTED}
        job = job_of(new)
        if not old.get("generation"):
            return await self._install(context, job, again=True)
        return await self._reprovision(context, job, open_remote(context, job, self._opener))

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        job = _job_in_state(old)
        seen = await machine.look(job)
        if isinstance(seen, Installed) and old.get("generation") and seen.generation != old["generation"]:
            return {"generation": seen.generation or "none"}
        return {}

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        """Leaves the installer's files to their `Artifacts`: a machine made anew may need them at this very moment."""
        await open_remote(context, _job_in_state(old), self._opener).withdraw()

    async def _install(self, context: Context, job: Job, *, again: bool) -> Values:
        """The first installation: nothing of a cluster is to be kept, unless the machine turns out to have a node."""
        remote = open_remote(context, job, self._opener)
        installer = Installer(context, job, remote, self._pace)
        seen = await (machine.look(job) if job.ordered and not again else installer.settled())
        if isinstance(seen, Installed) and seen.generation != job.generation and seen.joined:
            return await self._reprovision(context, job, remote)
        try:
            outcome = await installer.install(seen, underway=job.ordered and not again, again=again)
            await installer.flip(outcome)
        except ProviderError as error:
            raise await _with_logs(job, error) from error
        await withdraw_files(context, job)
        return _outputs(job, outcome)

    async def _reprovision(self, context: Context, job: Job, remote: Remote) -> Values:
        roll = self._rolls[(job.cluster, job.pool)]
        try:
            outcome = await Reprovisioning(context, job, remote, roll, self._pace).run()
        except ProviderError as error:
            raise await _with_logs(job, error) from error
        return _outputs(job, outcome)


def _job_in_state(old: Values) -> Job:
    """The job as the state has it. Its generation is what was last seen, of any form."""
    return job_of({**{key: old[key] for key in old if key not in _COMPUTED}, "generation": "0" * 16})


def _outputs(job: Job, outcome: Outcome) -> Values:
    return {
        "generation": job.generation,
        "installedAt": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "device": outcome.device or None,
        "via": outcome.via,
    }


async def _with_logs(job: Job, error: ProviderError) -> ProviderError:
    """The error, and where the journal of whatever answers on the machine was put."""
    if job.log_directory is None:
        return error
    seen = await machine.look(job)
    if isinstance(seen, machine.Silent):
        return error
    node = job.installed if isinstance(seen, Installed) else job.installing
    logs = await gather(job.access(node), f"installation-{job.hostname}", [node])
    return ProviderError(f"{error}\n  logs: {logs.directory}") if logs.directory else error
