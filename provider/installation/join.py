"""A machine that was installed again comes back: boots from its disk, is checked, becomes Ready, and is uncordoned."""

from __future__ import annotations

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates.cluster import NodesReady
from metal_ipi.provider.gates.first_boot import FirstBoot
from metal_ipi.provider.gates.ssh import CommandFailed, NotYet, WrongHostKey, run
from metal_ipi.provider.installation import machine
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.installation.install import Installer, Pace
from metal_ipi.provider.installation.machine import Installed
from metal_ipi.provider.installation.node_object import NodeObject
from metal_ipi.provider.installation.nodes import Cluster
from metal_ipi.provider.node_check import script_of
from metal_ipi.provider.status import Status


async def runs_from_disk(job: Job, installer: Installer, status: Status, pace: Pace) -> Installed:
    """Wait until the machine runs its generation from disk, and its first boot, which ends in a reboot, is over."""
    backoff = pace.looks(job.timeout_seconds)
    first_boot = FirstBoot()
    while True:
        seen = await installer.watch()
        text = machine.describe(seen)
        if isinstance(seen, Installed) and seen.generation == job.generation:
            coming = first_boot.awaits(seen.first_boot, seen.boot_id)
            if coming is None:
                return seen
            text = coming
        too_long = ProviderError(
            f"{installer.named} was installed, but did not boot from its disk within "
            f"{job.timeout_seconds:g} s (last seen: {text}): look at its console, at its boot order, which must "
            "contain that disk, and at `journalctl -u machine-config-daemon-firstboot`. Then run the same command again"
        )
        await backoff.wait_for(f"{job.hostname} from its disk ({text})", status.live, too_long)


async def check(job: Job, installer: Installer, status: Status, pace: Pace) -> None:
    """Wait until the machine runs from its disk, and run the check script on it. Raises ProviderError if the check
    fails.

    A failed check is repeated if the node reboots or goes down during it. On a node that stays as it is, it is final.
    """
    backoff = pace.looks(job.timeout_seconds)
    while True:
        before = await runs_from_disk(job, installer, status, pace)
        if not job.expected:
            return
        await status.live(f"checking {job.hostname}")
        try:
            await run(
                job.installed, job.access(job.installed), "bash -s", script_of(job.expected), timeout=pace.commands
            )
        except CommandFailed as error:
            await backoff.pause()
            if backoff.over or await installer.watch() == before:
                raise ProviderError(
                    f"node {job.node} was installed, but its check failed: {error}. It stays as it is, and no further "
                    "node is installed: correct what the check names, then run the same command again"
                ) from None
        except (NotYet, WrongHostKey) as error:
            if backoff.over:
                raise ProviderError(f"node {job.node} was installed, but cannot be checked: {error}") from None
        else:
            return
        await backoff.pause()


async def is_ready(job: Job, node: NodeObject, installer: Installer, status: Status, pace: Pace) -> None:
    """Wait until the node is Ready in the boot that SSH sees. Raises ProviderError when the time is up.

    Approves its certificate requests. As soon as the node has registered, it also restores what people had set on the
    old node, because taints must be there before pods are. The API reports the old node as Ready for about a minute,
    until it misses its kubelet. A node may also boot again before its kubelet starts: RHCOS does, into the operating
    system of the cluster's release.
    """
    gate = NodesReady(
        {**(job.api or {}), "names": [job.node], "addresses": {job.node: list(job.all_addresses)}}, [job.node]
    )
    backoff = pace.looks(job.timeout_seconds)
    while True:
        seen, now = await gate.look(backoff.elapsed), await installer.watch()
        text = seen.text
        registered = isinstance(now, Installed) and await node.put_back(now.boot_id)
        if seen.passed:
            if registered:
                return
            text = f"{job.node} (its kubelet has not reported since it was started)"
        too_long = ProviderError(
            f"node {job.node} was installed, but is not Ready after {job.timeout_seconds:g} s: {text}. Look at the "
            "journal of its kubelet; then run the same command again, which continues to wait"
        )
        await backoff.wait_for(text, status.live, too_long)


async def open_again(job: Job, cluster: Cluster, status: Status) -> None:
    """Uncordon the node, unless somebody else had cordoned it."""
    if not await cluster.uncordon(job.node):
        await status.remark(f"node {job.node} stays cordoned: it was before it was installed again")
