"""Where the machines of one pool wait in their live systems for each other, and are checked together.

The engine may run any number of resources at once, so nothing may wait for a machine whose resource has not started.
The held machines are checked when all started ones are there, and no new one has come for a while. Results of machines
that were checked earlier in the same run are kept.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from metal_ipi.provider import backoff
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates.ssh import CommandFailed, NotYet, WrongHostKey, run
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.live_checks import facts, rules
from metal_ipi.provider.resources.live_system import LiveChecksArgs

Say = Callable[[str], Awaitable[None]]
_PROBE_SECONDS = 300.0
_PEERS = 10
"""The number of other machines to which each one tests its connection: in large pools not every pair is tested."""
_VERDICT = "/run/metal-ipi/verdict"
_GO = "go"
_REMEDY = (
    "Correct it, or make it a warning, with the reason, in metal-ipi:preflight.live.overrides; then run the same "
    "command again"
)


class Meeting:
    """The machines of one pool of a cluster, in one run."""

    def __init__(self, *, gather: float, look: float) -> None:
        """`gather`: seconds without a new machine after which the check starts. `look`: seconds between two looks."""
        self._gather, self._look = gather, look
        self._begun: set[str] = set()
        """Host names of machines on their way into the live system, or held there."""
        self._failed: set[str] = set()
        self._held: dict[str, Job] = {}
        self._known: dict[str, rules.Asked] = {}
        self._verdicts: dict[str, asyncio.Future[str]] = {}
        """By host name, the decision about a held machine: `go`, or why nothing is installed."""
        self._told: dict[str, facts.Facts] = {}
        """What machines told while another one could not be asked. They are not asked again: where processors are slow
        that takes minutes, and then the other one does not answer either."""
        self._asked: set[str] = set()
        """The machines that were asked then: each told of the way to others of them."""
        self._newest = 0.0
        self._checking: asyncio.Task[None] | None = None
        self._warnings = ""
        self.refused = False
        """Whether nothing was installed on some machines."""

    @asynccontextmanager
    async def expecting(self, job: Job) -> AsyncGenerator[None]:
        """Register a machine that is, or may have to be, installed: others wait for it before they are checked.
        Reentrant."""
        self._failed.discard(job.hostname)
        if job.live_checks is not None:
            self._begun.add(job.hostname)
        try:
            yield
        except BaseException:
            if job.hostname in self._begun:
                self._failed.add(job.hostname)
            raise
        finally:
            self._begun.discard(job.hostname)

    async def attend(self, job: Job, say: Say) -> None:
        """Check a held machine together with the others, and tell it the decision.

        Raises ProviderError if nothing is installed, and NotYet or WrongHostKey if the machine cannot be asked now.
        """
        if job.live_checks is None:  # its installer was made by a run with checks
            await self._tell(job, [_GO])
            return
        verdict = asyncio.get_running_loop().create_future()
        self._held[job.hostname], self._verdicts[job.hostname] = job, verdict
        self._newest = backoff.clock.now()
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check())
        try:
            said = str(await verdict)
        finally:
            del self._held[job.hostname], self._verdicts[job.hostname]
        if warnings := self._warnings:
            self._warnings = ""
            await say(warnings)
        await self._tell(job, [said] if said == _GO else [said.splitlines()[0], _REMEDY])
        if said != _GO:
            raise ProviderError(f"{said}\n{_REMEDY}")
        self._begun.discard(job.hostname)

    @staticmethod
    async def _tell(job: Job, lines: Sequence[str]) -> None:
        command = f"sudo -n sh -c 'cat >{_VERDICT}.new && mv {_VERDICT}.new {_VERDICT}'"
        await run(job.installing, job.access(), command, "".join(f"{line}\n" for line in lines))

    async def _check(self) -> None:
        """Check the held machines when it is time; those that come in between are checked after them."""
        while self._held:
            await self._gathered()
            jobs = dict(self._held)
            try:
                await self._check_all(jobs)
            except Exception as error:  # raised by the waiting machines, which would wait for ever otherwise
                for name in jobs:
                    self._end(name, error)
            while any(verdict.done() for verdict in self._verdicts.values()):
                await backoff.clock.sleep(self._look)

    async def _check_all(self, jobs: Mapping[str, Job]) -> None:
        if set(jobs) != self._asked:
            self._told, self._asked = {}, set(jobs)
        asked = [job for name, job in jobs.items() if name not in self._told]
        answers = await asyncio.gather(*(self._ask(job, jobs) for job in asked))
        known_answers = {**self._told, **dict(zip((job.hostname for job in asked), answers, strict=True))}
        away = {name: each for name, each in known_answers.items() if isinstance(each, NotYet | WrongHostKey)}
        for name, why in away.items():  # the others stay held
            self._end(name, why)
        known = {name: each for name, each in known_answers.items() if isinstance(each, facts.Facts)}
        if away:
            # Where packets were lost, the machine that they were for may be one that was away.
            self._told = {name: each for name, each in known.items() if each.reached_all}
        else:
            self._told = {}
            self._judge(
                jobs, {**known, **{name: each for name, each in known_answers.items() if isinstance(each, str)}}
            )

    async def _gathered(self) -> None:
        while True:
            quiet = backoff.clock.now() - self._newest
            if not self._begun - self._held.keys() and (quiet >= self._gather or not self._absent()):
                return
            await backoff.clock.sleep(self._look)

    def _absent(self) -> set[str]:
        """Members of the pool that were not seen in this run; they may be running already."""
        members = {member for job in self._held.values() for member in job.members}
        return members - {job.node for job in self._held.values()} - {each.node for each in self._known.values()}

    async def _ask(self, job: Job, jobs: Mapping[str, Job]) -> facts.Facts | str | NotYet | WrongHostKey:
        """A machine's answers; or why it cannot answer, permanently (a text) or now (an exception)."""
        asked = job.live_checks or LiveChecksArgs(release="")
        names = sorted(jobs)
        place = names.index(job.hostname)
        others = [*names[place + 1 :], *names[:place]][:_PEERS]
        values = {
            "NAMES": " ".join(asked.names),
            "REGISTRIES": " ".join(asked.registries),
            "PEERS": " ".join(jobs[name].address for name in others),
            "ADDRESS": job.address,
            "AUTHORITIES": asked.authorities or "",
        }
        script = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()) + facts.PROBE.read_text()
        try:
            before = time.time()
            now = float(await run(job.installing, job.access(), "date +%s.%N"))
            after = time.time()
            text = await run(job.installing, job.access(), "sudo -n bash -s", script, timeout=_PROBE_SECONDS)
            answer = facts.parse(text, ahead=now - (before + after) / 2, uncertain=(after - before) / 2)
            if answer.peers is not None and (missing := {jobs[name].address for name in others} - answer.peers.keys()):
                return f"it does not report the connection to {', '.join(sorted(missing))}"
        except (CommandFailed, ValueError) as error:
            return f"it does not report what was requested: {error}"
        except (NotYet, WrongHostKey) as error:
            return error
        return answer

    def _judge(self, jobs: Mapping[str, Job], told: Mapping[str, facts.Facts | str]) -> None:
        machines = {
            name: rules.Asked(name=name, node=job.node, address=job.address, role=job.role, facts=answer)
            for name, job in jobs.items()
            if not isinstance(answer := told[name], str)
        }
        lost = {name: answer for name, answer in told.items() if isinstance(answer, str)}
        one = next(iter(jobs.values()))
        asked = one.live_checks or LiveChecksArgs(release="")
        cluster = rules.Cluster(
            release=asked.release,
            alone=one.has_etcd and len(one.members) == 1,
            missing={**dict.fromkeys(self._failed - jobs.keys(), rules.NOT_THERE), **lost},
        )
        before = [each for name, each in self._known.items() if name not in jobs]
        found = rules.found(cluster, [*machines.values(), *before], asked.overrides)
        table = rules.table({name: each for name, each in found.items() if each})
        wrong = sorted(name for name, each in found.items() if any(finding.level == "error" for finding in each))
        self.refused = self.refused or bool(wrong)
        if not wrong:
            self._known |= machines
            self._warnings = f"live checks:\n{table}" if table else ""
        for number, name in enumerate(sorted(jobs)):
            said = f"live checks: nothing is installed, because of {', '.join(wrong)}"
            self._end(name, (said if number else f"{said}\n{table}") if wrong else _GO)

    def _end(self, name: str, what: str | Exception) -> None:
        verdict = self._verdicts.get(name)
        if verdict is None or verdict.done():  # nothing waits for it any more
            return
        if isinstance(what, str):
            verdict.set_result(what)
        else:
            verdict.set_exception(what)
