"""Boots a machine into its installer, follows the installer, and boots the machine from its disk."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

from metal_ipi.provider import backoff
from metal_ipi.provider.errors import ProviderError, RemoteError
from metal_ipi.provider.gates.ssh import NotYet, WrongHostKey
from metal_ipi.provider.installation import machine
from metal_ipi.provider.installation.commands import boot_by_commands
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.installation.machine import Installed, Installing, Seen, Silent
from metal_ipi.provider.installation.meeting import Meeting
from metal_ipi.provider.installation.remote import Remote, missing_files, withdraw_files
from metal_ipi.provider.resource import Context

_AGAIN = 3
"""How often a machine that left its installer too early is sent back."""


_ORDER, _FOUND = _NOT_OURS = ("order", "found")
"""Values of `via` for ways that this run did not take: the machine was ordered into its installer, or sent there by an
earlier run."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Pauses and timeouts, in seconds."""

    soon: float = 0.7
    """Between the first looks at a machine, and after a change."""
    look: float = 3.0
    """Between two looks without a change."""
    newcomer: float = 10.0
    """Without a new held machine, until the held ones are checked."""
    gather: float = 0.5
    """For machines of a pool to arrive before the first one has its turn."""
    patience: float = 120.0
    """A machine that is silent for less may be starting."""
    entry: float = 900.0
    """Until the live system answers: servers' firmware takes minutes."""
    leave: float = 120.0
    """Until a system that was told to reboot is gone."""
    vanished: float = 120.0
    """A live system that is silent for so long is considered gone."""
    power: float = 15.0
    """For a machine that is silent for so long, the power state is asked."""
    answer: float = 20.0
    """For a BMC's answer about the power: a slow BMC must not delay the next look at the machine."""
    cluster: float = 60.0
    """A cluster that does not answer for so long is considered unreachable."""
    commands: float = 900.0
    """For one command of the user, or the check of a node."""

    def looks(self, timeout: float) -> backoff.Backoff:
        """The pauses between looks at a process that may take `timeout` seconds."""
        return backoff.Backoff(timeout=timeout, first=min(self.soon, self.look), longest=self.look)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result for a machine that is installed."""

    device: str
    via: str
    seen: Seen
    """The last observation: the live system, unless it runs from disk already."""


@dataclass(frozen=True, kw_only=True)
class _Lost:
    """The machine is not in its installer, or not any more."""

    why: str
    entry_failed: bool
    """Whether the way into the installer failed, so that it need not be tried again."""
    seen: Seen


class Installer:
    """Installs one machine in any state. After a killed run it continues from the machine's current state."""

    def __init__(self, context: Context, job: Job, remote: Remote, pace: Pace, meeting: Meeting) -> None:
        """`meeting`: where held machines of the same role wait for each other, before anything is written."""
        self._context, self._status, self._job, self._remote, self._pace = context, context.status, job, remote, pace
        self._meeting = meeting
        self._unusable: dict[str, str] = {}
        """Ways into the installer that are not tried any more, and why."""
        self._tried: dict[str, int] = {}
        """How often each way did not lead there."""
        self._ask_power_at = 0.0
        self._held = 0.0
        """Seconds that it waited for other machines; these do not count towards its timeout."""
        self._last_sign: float | None = None
        """When the watched machine last answered, or was first watched."""

    async def settled(self, *, patient: bool = True) -> Seen:
        """Wait until a system answers, or the machine is known to be silent.

        A silent machine may be starting and gets time, unless it is off. Not `patient`: silence is accepted at once,
        because whatever starts there will be replaced. Raises ProviderError if an unknown system answers that may not
        be wiped.
        """
        begun, pauses = backoff.clock.now(), self._pace.looks(math.inf)
        patience = 0.0
        while True:
            seen = await machine.look(self._job)
            quiet = backoff.clock.now() - begun
            if not isinstance(seen, Silent):
                return seen
            if seen.stranger:
                await self._refuse_stranger()
                return seen
            if not patient or await self.is_off():
                return seen
            if quiet >= self._pace.patience and not patience:
                # If its installer's files are gone, it was installed, and may be in the first boot from its disk.
                gone = await missing_files(self._context, self._job)
                patience = self._pace.entry if gone else self._pace.patience
            if patience and quiet >= patience:
                return seen
            await self._status.live(f"waiting for {self._job.hostname} to answer ({seen.why}), {quiet:.0f} s")
            await pauses.pause()

    async def _refuse_stranger(self) -> None:
        job = self._job
        if job.accept == "wipe":
            return
        raise ProviderError(
            f"machine {job.hostname} ({job.machine_id}, {self._remote.where}) is left as it is: at {job.address} SSH "
            f"answers with host key {await machine.host_key(job)}, which is not its key. If that is another machine, "
            "correct the address or the BMC. If it is this one, and all its data may be deleted, set `consent: wipe` "
            "for this server"
        )

    async def install(self, seen: Seen, *, underway: bool, again: bool) -> Outcome:
        """Return once the machine is installed, before it leaves the live system. Raises ProviderError.

        `underway`: somebody has sent it into its installer already. `again`: a live system that failed did so in an
        earlier run, so its cause may have been corrected.
        """
        async with self._meeting.expecting(self._job):
            return await self._install(seen, underway=underway, again=again)

    async def _install(self, seen: Seen, *, underway: bool, again: bool) -> Outcome:
        deadline = backoff.clock.now() + self._job.timeout_seconds
        via = _ORDER if underway else _FOUND
        inside = underway if isinstance(seen, Silent) else self._is_ours(seen, again=again)
        before = ""
        losses: list[str] = []
        while True:
            if not inside:
                via, before = await self._enter(seen)
            end = await self._follow(before, via, deadline)
            if isinstance(end, Outcome):
                return end
            if end.entry_failed:
                # The driver may do more the next time after its one-time boot was ignored.
                self._tried[via] = self._tried.get(via, 0) + 1
                if via != self._remote.via or self._tried[via] > 1:
                    self._unusable[via] = end.why
            else:
                losses.append(f"{via}: {end.why}")
            if len(losses) > _AGAIN:
                raise self._gave_up(f"left its installer {len(losses)} times ({'; '.join(losses)})")
            await self._status.remark(f"{self._job.hostname}: {via}: {end.why}; it is booted into its installer again")
            seen, inside = end.seen, False

    def _is_ours(self, seen: Seen, *, again: bool) -> bool:
        if isinstance(seen, Installing):
            failed = seen.state == "expired" or (again and seen.state == "failed")
            return seen.generation in ("", self._job.generation) and not failed
        return isinstance(seen, Installed) and seen.generation == self._job.generation

    async def _enter(self, seen: Seen) -> tuple[str, str]:
        """Send the machine into its installer by the first way that works. Raises ProviderError if none does.

        Returns that way, and the id of the boot that must end.
        """
        job = self._job
        if missing := await missing_files(self._context, job):
            raise ProviderError(
                f"machine {job.hostname} cannot be installed: {', '.join(missing)} of its installer is no longer on "
                "the artifact host, as after an installation. If it is just starting, run the same command again once "
                "it has started; otherwise have it installed anew: raise its `installation` "
                "in metal-ipi:platform.servers, or have the files uploaded again (pulumi up --replace with the URN of "
                "the Artifacts that end in `-installers` and in `-initrds`)"
            )
        await self._remote.prepare()
        running = None if isinstance(seen, Silent) else seen
        if running is not None and "kexec" not in self._unusable:
            node = job.installed if isinstance(running, Installed) else job.installing
            await self._status.live(f"booting {job.hostname} into its installer by kexec")
            try:
                await machine.kexec(job, node, self._context.settings.need_artifacts().ca_bundle)
            except (NotYet, WrongHostKey) as error:
                await self._not_this_way("kexec", str(error))
            else:
                return "kexec", running.boot_id
        before = running.boot_id if running else ""
        if self._remote.via not in self._unusable:
            await self._status.live(f"booting {job.hostname} into its installer by {self._remote.via}")
            try:
                await self._remote.enter()
            except RemoteError as error:
                await self._not_this_way(self._remote.via, str(error))
            else:
                return self._remote.via, before
        if job.pxe_commands and "pxe-commands" not in self._unusable:
            try:
                environment = self._remote.environment()
                await boot_by_commands(job, environment, self._status, timeout=self._pace.commands)
            except RemoteError as error:
                await self._not_this_way("pxe-commands", str(error))
            else:
                return "pxe-commands", before
        failures_text = "; ".join(f"{way}: {why}" for way, why in self._unusable.items())
        raise self._gave_up(f"could not be booted into its installer ({failures_text})")

    async def _not_this_way(self, way: str, why: str) -> None:
        self._unusable[way] = why
        await self._status.remark(f"{self._job.hostname} could not be booted into its installer by {way}: {why}")

    async def _follow(self, before: str, via: str, deadline: float) -> Outcome | _Lost:
        """Watch until the machine is installed, or is not in its installer. Raises ProviderError if the installation
        failed."""
        job, pace = self._job, self._pace
        begun = sign = backoff.clock.now()
        lived, description, pauses = False, "", pace.looks(deadline - begun)
        while True:
            seen, now = await machine.look(job), backoff.clock.now()
            description, before_that = machine.describe(seen), description
            if description != before_that:
                pauses = pace.looks(deadline - now)
            left = isinstance(seen, Silent) or seen.boot_id != before
            if not left and now - begun >= pace.leave:
                return _Lost(why="the previous system did not end", entry_failed=True, seen=seen)
            if isinstance(seen, Installing) and left:
                if seen.generation not in ("", job.generation):
                    return _Lost(
                        why=f"the live system of generation {seen.generation} booted", entry_failed=True, seen=seen
                    )
                if seen.state == "held":
                    await self._be_checked(seen)
                    now = backoff.clock.now()
                if seen.state == "done":
                    return Outcome(device=seen.device, via=via, seen=seen)
                if seen.state == "expired" and via in _NOT_OURS:
                    return _Lost(why="its installer has expired", entry_failed=True, seen=seen)
                if seen.state in ("failed", "expired"):
                    raise self._failure(seen)
                lived, sign = True, now
                await self._status.live(f"{job.hostname}: {seen.step or seen.state}, {now - begun:.0f} s")
            elif isinstance(seen, Installed) and left:
                if seen.generation == job.generation:
                    return Outcome(device="", via=via, seen=seen)
                why = "its installer ended before it was done" if lived else "it booted from its disk instead"
                return _Lost(why=why, entry_failed=not lived, seen=seen)
            elif isinstance(seen, Silent):
                quiet = now - sign
                if quiet >= (pace.vanished if lived else pace.entry):
                    why = f"its installer did not answer for {quiet:.0f} s ({seen.why})"
                    return _Lost(why=why, entry_failed=not lived, seen=seen)
                if quiet >= pace.power and await self.is_off():
                    return _Lost(why="it lost its power", entry_failed=False, seen=seen)
                await self._status.live(
                    f"waiting for the installer of {job.hostname} ({seen.why}), {now - begun:.0f} s"
                )
            if now >= deadline + self._held:
                raise self._gave_up(f"was not installed within {job.timeout_seconds:g} s (last seen: {description})")
            await pauses.pause()

    async def _be_checked(self, seen: Installing) -> None:
        """Have a held machine checked together with the others of its role. Raises ProviderError if it is refused."""
        job, begun = self._job, backoff.clock.now()
        await self._status.live(f"{job.hostname}: {seen.step}")
        try:
            await self._meeting.attend(job, self._status.remark)
        except (NotYet, WrongHostKey) as error:  # the next look shows what happened to it
            await self._status.live(f"{job.hostname} cannot be checked: {error}")
        finally:
            self._held += backoff.clock.now() - begun

    async def boot_from_disk(self, done: Outcome) -> None:
        """Make the machine boot from its disk, now and later; returns once the live system has ended."""
        job, seen = self._job, done.seen
        await self._remote.withdraw()
        # Before the restart: missing files tell a run after a killed one that the machine is in its first boot.
        await withdraw_files(self._context, job)
        try:
            await self._remote.boot_disk()
        except RemoteError as error:
            # Its script is withdrawn: even if the network comes first in its boot order, its firmware goes on to the
            # disk.
            await self._status.remark(f"{error}; {job.hostname} is restarted nevertheless")
        if not isinstance(seen, Installing):
            return
        await self._status.live(f"restarting {job.hostname} from its disk")
        try:
            await machine.reboot(job, job.installing)
        except (NotYet, WrongHostKey):
            await self._remote.restart()
        begun, restarted = backoff.clock.now(), False
        pauses = self._pace.looks(math.inf)
        while isinstance(now := await machine.look(job), Installing) and now.boot_id == seen.boot_id:
            if backoff.clock.now() - begun >= self._pace.leave:
                if restarted:
                    raise self._gave_up("is installed, but its live system does not end", "Reset it by hand")
                begun, restarted = backoff.clock.now(), True
                await self._remote.restart()
            await pauses.pause()

    async def watch(self) -> Seen:
        """Look at an installed machine. If it is silent because it is off, switch it on, because nothing else would."""
        seen, now = await machine.look(self._job), backoff.clock.now()
        if self._last_sign is None or not isinstance(seen, Silent):
            self._last_sign = now
        elif now - self._last_sign >= self._pace.power and await self.is_off():
            await self._status.remark(f"{self._job.hostname} ({self._remote.where}) lost its power: it is switched on")
            await self._remote.restart()
            self._last_sign = backoff.clock.now()
        return seen

    async def is_off(self) -> bool:
        """Whether it is known to be off. If that cannot be found out soon, False; then it is not asked again for a
        while."""
        if backoff.clock.now() < self._ask_power_at:
            return False
        try:
            return await asyncio.wait_for(self._remote.is_off(), self._pace.answer)
        except (RemoteError, TimeoutError) as error:
            self._ask_power_at = backoff.clock.now() + self._pace.vanished
            await self._status.live(f"{self._job.hostname} ({self._remote.where}): {error or 'no answer'}")
            return False

    def _gave_up(self, what: str, remedy: str = "") -> ProviderError:
        return ProviderError(f"{self.named} {what}. {remedy or self._remote.remedy}. Then run the same command again")

    def _failure(self, seen: Installing) -> ProviderError:
        remedy = f". {seen.remedy}" if seen.remedy else ""
        return ProviderError(f"{self.named} was not installed: {seen.reason or 'no reason given'}{remedy}")

    @property
    def named(self) -> str:
        """The machine, and what controls its power, for messages."""
        return f"machine {self._job.hostname} ({self._job.machine_id}, {self._remote.where})"
