"""The resource type; see the package."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from metal_ipi.provider.errors import InitFailed, ProviderError
from metal_ipi.provider.failures import Failures
from metal_ipi.provider.gates.logs import gather
from metal_ipi.provider.inputs import Problem
from metal_ipi.provider.installation import machine
from metal_ipi.provider.installation.departure import leave
from metal_ipi.provider.installation.inputs import WORKER, Job
from metal_ipi.provider.installation.install import Installer, Outcome, Pace
from metal_ipi.provider.installation.machine import Installed, Seen, Silent
from metal_ipi.provider.installation.meeting import Meeting
from metal_ipi.provider.installation.node_object import NodeObject
from metal_ipi.provider.installation.nodes import Cluster, Unreachable
from metal_ipi.provider.installation.pool import Pools
from metal_ipi.provider.installation.remote import Opener, Remote, open_remote, withdraw_files
from metal_ipi.provider.installation.reprovision import Reprovisioning, refuse_unconsented
from metal_ipi.provider.installation.roll import Roll
from metal_ipi.provider.platforms.registry import open_driver
from metal_ipi.provider.resource import Changes, Context, Kind, Made, ResourceType, Values, simple_changes, time_now
from metal_ipi.provider.resources.installation import InstallationArgs
from metal_ipi.provider.status import Redactor
from metal_ipi.provider.values import UNKNOWN, has_unknown

_COMPUTED = ("generation", "installedAt", "device", "via")
_ANOTHER = frozenset({"platform", "machineId", "hostname", "cluster"})
"""Inputs whose change means another machine, so that the resource is replaced."""
_STABLE = re.compile(r"/dev/disk/by-(id|path)/[\w.:+=@,-]+")
"""A stable name of a disk, in characters that kernel and iPXE do not interpret."""


class Installation(ResourceType):
    """A machine's operating system on its disk."""

    token = "metal-ipi:index:Installation"  # noqa: S105 - a type token
    inputs = Job
    # These are in the state's inputs already. `runs` is kept as an output: if a machine is left on an earlier
    # generation, the inputs tell what it should run, and the outputs what it runs. By the names of machines an
    # `up` knows which ones there are.
    hidden_inputs = frozenset(
        {*InstallationArgs.wire_names()} - {"machineId", "hostname", "cluster", "generation", "runs"}
    )
    found_by_inputs = True

    def __init__(
        self,
        pace: Pace | None = None,
        opener: Opener = open_driver,
        failures: Failures | None = None,
        pools: Pools | None = None,
    ) -> None:
        self._pace, self._opener, self._failures = pace or Pace(), opener, failures or Failures()
        self._pools = pools or Pools()
        self._rolls: dict[tuple[str, str], Roll] = defaultdict(
            lambda: Roll(gather=self._pace.gather, look=self._pace.look)
        )
        """The rolls of each cluster's pools; a plugin process lives as long as one update."""
        self._meetings: dict[tuple[str, str], Meeting] = defaultdict(
            lambda: Meeting(gather=self._pace.newcomer, look=self._pace.soon)
        )
        """Where held machines of each cluster's pools wait for each other."""
        self._unformed: set[str] = set()
        """Clusters that were not formed according to this update's inputs. States contain what an earlier update
        said."""

    def check(self, inputs: Values) -> list[Problem]:
        if inputs.get("disposable") is True:
            self._unformed.add(str(inputs.get("cluster")))
        return super().check(inputs)

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        found = simple_changes(old, new, tuple(sorted(_ANOTHER)), _ANOTHER)
        if not found.replaces and _stays(old, new):
            return Changes(warning=_left_alone(old, new))
        changes: dict[str, Kind] = dict(found.changes)
        if old.get("artifacts") != new.get("artifacts"):
            changes["artifacts"] = "update"
        if old.get("generation") != new.get("generation"):
            changes["generation"] = "update"
            was, runs = old.get("runs") or {}, new.get("runs")
            if isinstance(runs, dict):
                changes.update({f"runs.{key}": "update" for key in runs if runs[key] != was.get(key)})
        return Changes(changes=changes, replaces=found.replaces)

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        if old is not None and (old.get("generation") == new.get("generation") or _stays(old, new)):
            return {key: old.get(key) for key in _COMPUTED}
        known = not has_unknown([new.get(key) for key in ("generation", "role", "consent", "common", "members")])
        if old is not None and old.get("generation") and known:
            refuse_unconsented(Job.of_state(self._pools.whole(new)))
        return {**dict.fromkeys(_COMPUTED, UNKNOWN), "generation": new.get("generation")}

    async def create(self, context: Context, inputs: Values) -> Made:
        outputs = await self._install(context, context.identity, Job.read(self._pools.whole(inputs)), old=None)
        return Made(id=context.identity, outputs=outputs)

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        job = Job.read(self._pools.whole(new))
        if old.get("generation") == new.get("generation"):
            # Files that were uploaded again install nothing, but they contain secrets: delete them.
            await withdraw_files(context, job)
        if old.get("generation") == new.get("generation") or _stays(old, new):
            return {key: old.get(key) for key in _COMPUTED}
        job = job.model_copy(update={"recorded": _recorded(old, new)})
        if job.disposable or not old.get("generation"):
            # The installed system is no longer wanted, so do not wait for it to come up.
            outdated = bool(old.get("generation"))
            return await self._install(context, resource_id, job, old=old, outdated=outdated)
        try:
            return await self._reprovision(context, job, open_remote(context, job, self._opener))
        except ProviderError as error:
            raise await _with_logs(job, error) from error

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        job = _job_in_state(old)
        seen = await machine.look(job)
        if isinstance(seen, Installed) and old.get("generation") and seen.generation != old["generation"]:
            return {"generation": seen.generation or "none"}
        return {}

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        """Withdraw the boot script. The installer's files are left to their `Artifacts`: a replacement may need them at
        this moment."""
        leaves = context.given_up and old.get("role") == WORKER and old.get("installedAt")
        job = _job_in_state(self._pools.leaving(old) if leaves else old)
        job = job.model_copy(update={"disposable": job.cluster in self._unformed})
        remote = open_remote(context, job, self._opener)
        if leaves and job.api is not None:
            cluster = Cluster(job.api, patience=self._pace.cluster)
            await leave(job, cluster, self._installer(context, job, remote), context.status)
        await remote.withdraw()

    async def _install(
        self, context: Context, resource_id: str, job: Job, *, old: Values | None, outdated: bool = False
    ) -> Values:
        """The first installation. `old` is the state of an earlier run that began it; None if there is none."""
        partial = {key: (old or {}).get(key) for key in _COMPUTED} | {"generation": "", "device": job.recorded or None}
        try:
            return await self._install_first(context, job, partial, again=old is not None, outdated=outdated)
        except BaseException as error:  # also after a cancellation, so that the next run finds what was published
            message = str(error) or f"interrupted while {job.hostname} was being installed"
            raise InitFailed(message, resource_id, partial) from error

    async def _install_first(
        self, context: Context, job: Job, partial: dict[str, Any], *, again: bool, outdated: bool
    ) -> Values:
        """The first installation: drain only if a node exists.

        `partial` is the state of an unfinished installation: it tells whether the machine was installed, and so may
        have joined since.
        """
        remote = open_remote(context, job, self._opener)
        installer = self._installer(context, job, remote)
        underway = job.ordered and not again
        meeting = self._meetings[(job.cluster, job.pool)]
        try:
            # From here on the held machines wait for this one, however long it takes to find out what it runs.
            async with meeting.expecting(job):
                seen = await (machine.look(job) if underway else installer.settled(patient=not outdated))
                # A machine that answers as a node of the cluster was ordered earlier, whatever the order was for.
                has_node = (not underway or isinstance(seen, Installed)) and await self._has_node(
                    context, job, seen, again=again, installed=bool(partial["installedAt"])
                )
                outcome = None if has_node else await installer.install(seen, underway=underway, again=again)
            if outcome is None:  # the others must not wait for it while it waits for its turn
                return await self._reprovision(context, job, remote)
            outputs = _outputs(job, outcome)
            partial.update({**outputs, "generation": ""})
            await installer.boot_from_disk(outcome)
        except ProviderError as error:
            if job.has_etcd and job.disposable and meeting.refused:
                self._failures.no_cluster = "the check of the control plane's live systems"
            raise await _with_logs(job, error) from error
        return outputs

    async def _has_node(self, context: Context, job: Job, seen: Seen, *, again: bool, installed: bool) -> bool:
        """Whether the machine may be part of the cluster: its system says so; or it is silent and the cluster knows it;
        or an earlier run removed its node to install it again.

        A disposable machine may only have been part of an attempt to form a cluster, of which nothing is kept.
        """
        if job.disposable:
            return False
        if isinstance(seen, Installed) and seen.generation != job.generation:
            return seen.joined
        if job.api is None:
            return False
        if not isinstance(seen, Silent):
            return again and await self._was_taken_down(context, job, Cluster(job.api, patience=0))
        # Before a first installation there is no cluster to wait for.
        cluster = Cluster(job.api, patience=self._pace.cluster if installed else 0)
        try:
            return await cluster.node(job.node) is not None
        except Unreachable as error:
            if not job.has_etcd or not installed:
                return False
            raise ProviderError(
                f"control plane machine {job.hostname} is not installed again: it was installed before and does not "
                f"answer ({seen.why}), and it is not known whether the cluster can spare it: {error}. Make the "
                "machine or the cluster answer again; if there never was a cluster, replace the Installation: pulumi "
                "up --replace with its URN"
            ) from None

    async def _was_taken_down(self, context: Context, job: Job, cluster: Cluster) -> bool:
        try:
            return await NodeObject(cluster, job, context.status).is_kept()
        except Unreachable:
            return False

    def _installer(self, context: Context, job: Job, remote: Remote) -> Installer:
        return Installer(context, job, remote, self._pace, self._meetings[(job.cluster, job.pool)])

    async def _reprovision(self, context: Context, job: Job, remote: Remote) -> Values:
        roll = self._rolls[(job.cluster, job.pool)]
        installer = self._installer(context, job, remote)
        return _outputs(job, await Reprovisioning(context, job, remote, installer, roll=roll, pace=self._pace).run())


def _recorded(old: Values, new: Values) -> str | None:
    """The disk that the machine is installed on, which its installer must use again; see `Job.recorded`."""
    if not old.get("installedAt"):
        return None
    device = str(old.get("device") or "")
    was, wanted = ((values.get("runs") or {}).get("installDevice") for values in (old, new))
    return device if was == wanted and _STABLE.fullmatch(device) else ""


def _stays(old: Values, new: Values) -> bool:
    """Whether it is a control plane machine that keeps its generation until the user consents."""
    wanted = bool(new.get("keep")) and new.get("role") != WORKER and not new.get("consent")
    wanted = wanted and not new.get("disposable")
    return wanted and bool(old.get("generation")) and old.get("generation") != new.get("generation")


def _left_alone(old: Values, new: Values) -> str:
    return (
        f"control plane machine {new.get('hostname')} stays as it is: it runs generation {old.get('generation')}, and "
        f"should run {new.get('generation') if isinstance(new.get('generation'), str) else 'another'}. "
        "`metal-ipi:reprovision.controlPlane` is keep; to have it installed again, name it in "
        "`metal-ipi:reprovision.consent`"
    )


def _job_in_state(old: Values) -> Job:
    """The job in the state. Its generation in the state may have any form, so it is replaced."""
    return Job.of_state({**old, "generation": "0" * 16})


def _outputs(job: Job, outcome: Outcome) -> Values:
    return {
        "generation": job.generation,
        "installedAt": time_now(),
        "device": outcome.device or job.recorded or None,
        "via": outcome.via,
    }


async def _with_logs(job: Job, error: ProviderError) -> ProviderError:
    """The error, with the place of the journal of the system that answers."""
    if job.log_directory is None:
        return error
    seen = await machine.look(job)
    if isinstance(seen, machine.Silent):
        return error
    node = job.installed if isinstance(seen, Installed) else job.installing
    redact = Redactor()
    redact.learn(place.directory for place in job.artifacts)  # Ignition logs the URLs that it fetches
    logs = await gather(job.access(node), f"installation-{job.hostname}", [node], redact=redact)
    return ProviderError(f"{error}\n  logs: {logs.directory}") if logs.directory else error
