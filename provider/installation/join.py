"""A machine that was installed again comes back: from its disk, checked, Ready, and open for pods."""

from __future__ import annotations

from provider.backoff import Backoff
from provider.errors import ProviderError
from provider.gates.nodes_ready import NodesReady
from provider.gates.ssh import CommandFailed, NotYet, WrongHostKey, run
from provider.installation import machine
from provider.installation.inputs import Job
from provider.installation.install import Pace
from provider.installation.machine import Installed
from provider.installation.nodes import Cluster, boot_of
from provider.installation.remote import Remote
from provider.status import Status


async def runs_from_disk(job: Job, remote: Remote, status: Status, pace: Pace) -> None:
    """Waits until the machine runs its generation."""
    backoff = Backoff(timeout=job.timeout, first=pace.look, longest=pace.look)
    while True:
        seen = await machine.look(job)
        if isinstance(seen, Installed) and seen.generation == job.generation:
            return
        text = machine.told(seen)
        if backoff.over:
            raise ProviderError(
                f"machine {job.hostname} ({job.machine_id}, {remote.where}) was installed, but did not come up from "
                f"its disk within {job.timeout:g} s (last seen: {text}): look at its console, and whether its boot "
                "order has that disk. The same command goes on"
            )
        await status.live(f"waiting for {job.hostname} from its disk ({text}), {backoff.elapsed:.0f} s")
        await backoff.pause()


async def check(job: Job, status: Status, pace: Pace) -> None:
    """Runs the script that tells whether the node is what it should be."""
    if job.check is None:
        return
    backoff = Backoff(timeout=pace.commands, first=pace.look, longest=pace.look)
    await status.live(f"checking {job.hostname}")
    while True:
        try:
            await run(job.installed, job.access(job.installed), "bash -s", job.check, timeout=pace.commands)
        except CommandFailed as error:
            raise ProviderError(
                f"node {job.node} was installed, but its check failed: {error}. It stays cordoned, and the roll ends "
                "here: correct what the check names, then the same command goes on"
            ) from None
        except (NotYet, WrongHostKey) as error:
            if backoff.over:
                raise ProviderError(f"node {job.node} was installed, but cannot be checked: {error}") from None
        else:
            return
        await backoff.pause()


async def is_ready(job: Job, cluster: Cluster, status: Status, pace: Pace) -> None:
    """Waits until the node is Ready in the boot that SSH finds, and approves its certificate requests on the way.

    A cluster takes a minute to miss a kubelet: until then it tells that the node as it was before is Ready.
    A node may boot again before its kubelet starts: RHCOS does, into the operating system of the cluster's release.
    """
    gate = NodesReady(
        {**(job.credentials or {}), "names": [job.node], "addresses": {job.node: list(job.addresses)}}, [job.node]
    )
    backoff = Backoff(timeout=job.timeout, first=pace.look, longest=pace.look)
    while True:
        seen = await gate.look(backoff.elapsed)
        text = seen.text
        if seen.passed:
            boot, now = boot_of(await cluster.node(job.node)), await machine.look(job)
            if isinstance(now, Installed) and boot in ("", now.boot_id):
                return
            text = f"{job.node} (its kubelet has not told of itself since it was installed)"
        if backoff.over:
            raise ProviderError(
                f"node {job.node} was installed, but is not Ready after {job.timeout:g} s: {text}. Look at the journal "
                "of its kubelet; the same command waits on"
            )
        await status.live(f"waiting for {text}, {backoff.elapsed:.0f} s")
        await backoff.pause()


async def open_again(job: Job, cluster: Cluster, status: Status) -> None:
    """Lets pods come again, unless the node had been cordoned by somebody else."""
    if not await cluster.uncordon(job.node):
        await status.remark(f"node {job.node} stays cordoned: it was before it was installed again")
