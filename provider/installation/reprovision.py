"""Installs a machine again whose node is part of a cluster: drain, install, join, check, when its turn comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metal_ipi.provider import backoff
from metal_ipi.provider.errors import InvalidInputs, ProviderError
from metal_ipi.provider.gates.https import is_ready
from metal_ipi.provider.gates.ssh import NotYet, WrongHostKey
from metal_ipi.provider.installation import etcd, etcd_member, join, machine
from metal_ipi.provider.installation.commands import before_reboot
from metal_ipi.provider.installation.drain import drain
from metal_ipi.provider.installation.inputs import ARBITER, CONTROL_PLANE, WORKER, Job
from metal_ipi.provider.installation.install import Installer, Outcome, Pace
from metal_ipi.provider.installation.machine import Installed, Installing, Seen
from metal_ipi.provider.installation.node_object import NodeObject
from metal_ipi.provider.installation.nodes import CORDONED, Cluster, Unreachable
from metal_ipi.provider.installation.remote import Remote
from metal_ipi.provider.installation.roll import Roll, Turn
from metal_ipi.provider.resource import Context

_REMEDIES = {
    WORKER: "Repair them, or raise `reprovision.maxUnavailable`",
    **dict.fromkeys(
        (CONTROL_PLANE, ARBITER),
        "Repair them: of the control plane only as many are installed at once as etcd can spare",
    ),
}


def refuse_unconsented(job: Job) -> None:
    """Raise InvalidInputs if a control plane machine may not be installed again: without consent, or if the cluster
    would lose its quorum. Before there is a cluster, no consent is needed."""
    if not job.has_etcd or job.disposable:
        return
    count = len(job.members)
    if count - 1 < count // 2 + 1:
        whose = "it is the only member, and" if count == 1 else f"of {count} members"
        raise InvalidInputs(
            f"control plane machine {job.hostname} cannot be installed again: {whose} no quorum would remain. Install "
            "the cluster again, or undo the change that causes it (its Ignition, its kernel arguments, its "
            "consoles, its release or its disk)"
        )
    if not job.consent:
        raise InvalidInputs(
            f"control plane machine {job.hostname} would be installed again, which needs your consent: name it "
            "in `metal-ipi:reprovision.consent`, leave it as it is (`metal-ipi:reprovision.controlPlane: keep`), or "
            "undo the change that causes it (its Ignition, its kernel arguments, consoles, release or disk)"
        )


class Reprovisioning:
    """The turn of one machine. Every step first finds out whether an earlier, killed run has done it."""

    def __init__(
        self, context: Context, job: Job, remote: Remote, installer: Installer, *, roll: Roll, pace: Pace
    ) -> None:
        self._context, self._job, self._remote, self._roll, self._pace = context, job, remote, roll, pace
        self._status = context.status
        self._installer = installer

    async def run(self) -> Outcome:
        """Install the machine again. Raises ProviderError; the machine stays in the state in which it was then."""
        job = self._job
        refuse_unconsented(job)
        seen = await self._installer.settled()
        cluster = Cluster(job.api, patience=self._pace.cluster) if job.api else None
        try:
            node = await cluster.node(job.node) if cluster else None
        except Unreachable as error:
            self._need_no_cluster(seen, f"{error}")
            cluster = node = None
        if cluster is None:
            self._need_no_cluster(seen, "it has no access to the cluster: set `credentials`")
            return await self._alone(seen)
        cordoned, ready = CORDONED in _annotations(node), is_ready(node)
        # A control plane machine that is only cordoned, or only not Ready, may still run what the others need.
        away = (cordoned and not ready) if job.has_etcd else (cordoned or not ready)
        turn = Turn(
            node=job.node,
            at_once=1 if job.has_etcd else job.max_unavailable,
            # A machine that is away already does not make another one unavailable.
            up=not (away or isinstance(seen, Installing) or self._is_done(seen)),
            others=lambda: self._away(cluster),
            tell=self._status.live,
            timeout=job.drain_timeout_seconds,
            remedy=_REMEDIES[job.role],
        )
        while True:
            async with self._roll.turn(turn):
                why = await self._context.may_leave(job.hostname) if turn.up else ""
                if not why:
                    return await self._in_turn(cluster)
            # Its turn is over: who else of its pool is away is asked again next time.
            await self._status.live(why)
            await backoff.clock.sleep(self._pace.look)

    async def _in_turn(self, cluster: Cluster) -> Outcome:
        job = self._job
        seen = await self._installer.settled()
        node = NodeObject(cluster, job, self._status)
        if not self._is_done(seen):
            await self._status.live(f"cordoning {job.node}")
            await cluster.cordon(job.node, job.generation)
            if not isinstance(seen, Installing):
                await drain(cluster, job, self._status)
                seen = await self._prepared(seen)
                await self._keep_quorum(cluster)
            await node.save()
        outcome = await self._installer.install(seen, underway=False, again=True)
        taken_over = await self._forget(cluster, node, outcome.seen)
        await self._installer.boot_from_disk(outcome)
        if taken_over:
            await self._restart()
        await join.check(job, self._installer, self._status, self._pace)
        await join.is_ready(job, node, self._installer, self._status, self._pace)
        if job.has_etcd:
            await etcd.is_whole(job, cluster, self._status, self._pace)
        await join.open_again(job, cluster, self._status)
        return outcome

    async def _alone(self, seen: Seen) -> Outcome:
        """A cluster that was never formed misses no node, so there is no draining."""
        outcome = await self._installer.install(await self._prepared(seen), underway=False, again=True)
        await self._installer.boot_from_disk(outcome)
        await join.check(self._job, self._installer, self._status, self._pace)
        return outcome

    async def _forget(self, cluster: Cluster, node: NodeObject, seen: Seen) -> bool:
        """Remove the machine's old etcd member, Node object and certificates.

        Returns True if the new system runs already and has taken the old Node object over, as after a power loss.
        """
        job = self._job
        if isinstance(seen, Installed):
            return await node.remove_former()
        await self._status.live(f"removing the cluster's objects of the former {job.node}")
        if job.has_etcd:
            await etcd_member.remove_member(job, cluster, self._status, self._pace)
        await node.remove()
        if job.has_etcd:
            await etcd_member.remove_secrets(job, cluster)
        return False

    async def _restart(self) -> None:
        """Restart the machine: a kubelet creates its Node object only once, when it starts."""
        job = self._job
        await self._status.remark(f"{job.hostname} booted as its former node: it is restarted, to join as a new one")
        try:
            await machine.reboot(job, job.installed)
        except (NotYet, WrongHostKey):
            await self._remote.restart()

    async def _prepared(self, seen: Seen) -> Seen:
        """Run the user's commands if the old system runs; returns the system that answers afterwards."""
        if not isinstance(seen, Installed) or self._is_done(seen):
            return seen
        await before_reboot(self._job, self._status, timeout=self._pace.commands)
        return await machine.look(self._job)

    async def _away(self, cluster: Cluster) -> dict[str, str]:
        """Other members of the pool that are unavailable, and why."""
        job = self._job
        others = [member for member in job.members if member != job.node]
        away = await cluster.away(others)
        if job.has_etcd:
            # The member that etcd is missing may be that of this machine, which will be brought back; but never another
            # one's.
            up = is_ready(await cluster.node(job.node))
            if text := await etcd.trouble(cluster, members=len(job.members), needed=None if up else others):
                away["etcd"] = text
        return away

    async def _keep_quorum(self, cluster: Cluster) -> None:
        """Check the quorum a last time before a control plane machine goes down, because draining may have taken
        long."""
        if not self._job.has_etcd:
            return
        if away := await self._away(cluster):
            text = "; ".join(f"{name} ({why})" for name, why in sorted(away.items()))
            raise ProviderError(
                f"{self._job.node} is not installed: while it was drained, these nodes of its pool became "
                f"unavailable: {text}. It stays cordoned. Repair them, then run the same command again"
            )

    def _is_done(self, seen: Seen) -> bool:
        return isinstance(seen, Installed) and seen.generation == self._job.generation

    def _need_no_cluster(self, seen: Seen, why: str) -> None:
        """Raise ProviderError, unless the node was never part of a cluster according to its kubelet."""
        if isinstance(seen, Installed) and not seen.joined:
            return
        raise ProviderError(
            f"machine {self._job.hostname} is not installed again, because its node {self._job.node} cannot be "
            f"drained: {why}. If there never was a cluster, replace the Installation: pulumi up --replace with its URN"
        )


def _annotations(node: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return ((node or {}).get("metadata") or {}).get("annotations") or {}
