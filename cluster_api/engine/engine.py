"""One cluster: its plan, its running steps and its failed steps.

All objects of a cluster share one `Engine` and one state. Each object starts the steps that belong to it. A running
step is not started again, and a failed step is repeated after a pause. After a step the plan is computed again if
another step needs its results (`Plan.after`). A step that was killed is repeated: each resource type finds what an
earlier attempt made (`provider.resource`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from prometheus_client import Histogram

from metal_ipi.cluster_api.engine.plan import Plan, Step, context, kept, plan, types
from metal_ipi.cluster_api.engine.state import Entry, State, name_of, type_of
from metal_ipi.cluster_api.logs import Stamps
from metal_ipi.provider.artifacts import Artifacts
from metal_ipi.provider.configuration import Settings, secret_values
from metal_ipi.provider.errors import InitFailed, ProviderError
from metal_ipi.provider.resource import Context, ResourceType, at_once
from metal_ipi.provider.status import Redactor, Status

_logger = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0


class Store(Protocol):
    """Where the state of a cluster is kept."""

    async def load(self) -> State:
        """The complete state."""
        ...

    async def save(self, urn: str, entry: Entry | None) -> None:
        """Writes one entry; None removes it. Returns when it is written."""
        ...


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The last failure of a step."""

    name: str
    message: str
    times: int
    again: float
    """Time of the next try, on the monotonic clock."""
    leaving: bool
    """Whether it failed to remove something."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A cluster's program."""

    stack: str
    """The stack's name, which is in URNs and in the names of directories and log files."""
    fingerprint: str
    """A hash of the program's settings: it changes with the program."""
    program: Callable[[], Mapping[str, Any]]
    """Declares the cluster, and returns its outputs."""


_PLANNING = ThreadPoolExecutor(1, thread_name_prefix="plan")
"""The plans of all clusters are made one after the other (`plan`); those that wait for their turn occupy no thread."""
_PLANS = Histogram("metal_ipi_plan_seconds", "Seconds that one plan of a cluster took")


class Engine:
    """One cluster; the module describes it."""

    def __init__(self, store: Store, ring: Callable[[str], None] = lambda step: None) -> None:
        """`ring` is called at the end of each step, with its name."""
        self._store, self._ring = store, ring
        self.deciding = asyncio.Lock()
        """Held while deciding about a removal and starting it, so that two such decisions see each other."""
        self._redact = Redactor()
        self._state: State | None = None
        self._planned: tuple[str, Plan] | None = None
        self._planning = asyncio.Lock()
        self._meanwhile: list[tuple[Step | None, Entry | None]] = []
        """What was written since the state was read of which a plan is being made."""
        self._types = types()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[str] = set()
        """The running steps that remove something."""
        self._failures: dict[str, Failure] = {}
        self._said: dict[str, str] = {}
        self._changed = asyncio.Event()
        self.seconds: dict[str, float] = {}
        """Name of a finished step to its duration in seconds."""
        self.may_leave: Callable[[str], Awaitable[str]] = at_once
        """See `provider.resource.Context`."""
        self.published: Stamps = frozenset()
        """The logs that were published last."""

    def learn(self, secrets: Iterable[str]) -> None:
        """Add texts that must never appear in a message."""
        self._redact.learn(secrets)

    # --- what there is

    async def state(self) -> State:
        """The state: the created resources."""
        if self._state is None:
            self._state = await self._store.load()
        return self._state

    async def look(self, declaration: Declaration) -> Plan:
        """The current plan. Raises the errors of `plan`."""
        async with self._planning:
            while self._planned is None or self._planned[0] != declaration.fingerprint:
                self._renew()
                state, self._meanwhile = await self.state(), []
                made = partial(_timed, declaration.program, state, self._types, declaration.stack)
                found = await asyncio.get_running_loop().run_in_executor(_PLANNING, made)
                self.learn(found.secrets)
                if left := _after_all(found, self._meanwhile):
                    self._planned = (declaration.fingerprint, left)
            return self._planned[1]

    def running(self, names: Callable[[str], bool]) -> dict[str, str]:
        """Name of each running step to its latest message."""
        return {name_of(urn): self._said.get(urn, "") for urn in self._running if names(name_of(urn))}

    def going(self) -> set[str]:
        """The names of resources that are being removed."""
        return {name_of(urn) for urn in self._leaving}

    def failures(self, names: Callable[[str], bool]) -> list[Failure]:
        """The failed steps that have not succeeded since."""
        return [each for urn, each in self._failures.items() if names(name_of(urn)) and urn not in self._running]

    async def changed(self, seconds: float) -> None:
        """Wait until a step succeeds, fails or changes its message, or until the time is up."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    # --- what is done

    def advance(self, found: Plan, mine: Callable[[Step], bool]) -> None:
        """Starts all steps selected by `mine` that are ready."""
        for step in found.ready():
            if mine(step):
                self._begin(step, found.settings)

    def remove(self, found: Iterable[str], settings: Settings, *, given_up: bool) -> bool:
        """Begin to delete the existing resources of these URNs, dependent resources first. Returns whether none is
        left.

        `given_up`: they are deleted while the cluster stays (`provider.resource.Context`).
        """
        if self._state is None:
            return False
        left = {urn: self._state.entries[urn] for urn in found if urn in self._state.entries}
        needed = {each for entry in left.values() for each in entry.dependencies}
        for urn, entry in left.items():
            if urn not in needed:
                step = Step(urn=urn, action="delete", inputs={}, dependencies=(), order=entry.order, entry=entry)
                self._begin(step, settings, given_up=given_up)
        return not left

    def act(
        self, urn: str, settings: Settings, action: Callable[[Context], Awaitable[None]], *, leaving: bool = False
    ) -> None:
        """Start an action that is not a step of the plan. `urn` identifies it, and is not the URN of a resource.
        `leaving`: the action is part of a deletion, which `stop` does not end."""
        self._start(urn, settings, action, leaving=leaving)

    async def mark(self, urn: str, unfinished: str) -> None:
        """Marks an entry as unfinished, with the reason."""
        await self._keep(urn, replace((await self.state()).entries[urn], unfinished=unfinished))

    async def upload_again(self, hostname: str) -> None:
        """Upload the installer of a machine again: it was withdrawn when the machine was installed."""
        for urn, entry in list((await self.state()).entries.items()):
            hashes: Mapping[str, str] = entry.outputs.get("hashes") or {}
            kept = {name: text for name, text in hashes.items() if not name.startswith(f"{hostname}.")}
            if type_of(urn) == Artifacts.token and len(kept) < len(hashes):
                await self._keep(urn, replace(entry, outputs={**entry.outputs, "hashes": kept}))

    def abandon(self) -> list[asyncio.Task[None]]:
        """End all running steps, also deletions: another process continues them."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        return tasks

    async def stop(self, mine: Callable[[str], bool] = lambda name: True) -> None:
        """End running creations, by name, and forget failed ones."""
        tasks = [each for urn, each in self._running.items() if urn not in self._leaving and mine(name_of(urn))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._failures = {urn: each for urn, each in self._failures.items() if each.leaving or not mine(each.name)}

    def _begin(self, step: Step, settings: Settings, *, given_up: bool = True) -> None:
        kind = self._types[type_of(step.urn)]
        self._start(
            step.urn,
            settings,
            lambda about: self._carry(kind, replace(about, given_up=given_up), step),
            leaving=step.action == "delete",
        )

    def _start(
        self, urn: str, settings: Settings, action: Callable[[Context], Awaitable[None]], *, leaving: bool
    ) -> None:
        """Starts an action unless it is running or has just failed. Removals do not wait because a creation failed."""
        failure = self._failures.get(urn)
        pauses = failure is not None and failure.leaving == leaving and failure.again > time.monotonic()
        if urn in self._running or pauses:
            return
        if leaving:
            self._leaving.add(urn)
        task = self._running[urn] = asyncio.create_task(self._do(urn, settings, action), name=name_of(urn))
        # Not at the end of `_do`: none of it runs where the task is cancelled at once.
        task.add_done_callback(lambda _: self._ended(urn))

    def _ended(self, urn: str) -> None:
        del self._running[urn]
        self._leaving.discard(urn)
        self._tell()
        self._ring(name_of(urn))

    async def _do(self, urn: str, settings: Settings, action: Callable[[Context], Awaitable[None]]) -> None:
        began, name = time.monotonic(), name_of(urn)
        self.learn(secret_values(settings))
        try:
            await action(replace(context(urn, settings, Status(_Log(self), urn)), may_leave=self.may_leave))
        except asyncio.CancelledError:
            raise
        except ProviderError as error:
            self._failed(urn, str(error))
        except Exception as error:
            _logger.exception("%s", name)
            self._failed(urn, f"unexpected {type(error).__name__}: {error} (an error in the provider)")
        else:
            self._failures.pop(urn, None)
            self.seconds[name] = time.monotonic() - began
            _logger.info("%s: done in %.1f s", name, self.seconds[name])

    async def _carry(self, kind: ResourceType, about: Context, step: Step) -> None:
        entry = step.entry
        if step.action == "delete":
            assert entry is not None
            if not entry.id:
                entry = await _found(kind, about, step, entry)
            await kind.delete(about, entry.id, {**entry.inputs, **entry.outputs})
            await self._keep(step.urn, None)
            return
        if entry is None and _leaves_something(kind):
            await self._keep(step.urn, _entry(kind, step, "", {}, "begun"), step)
        try:
            if entry is None or not entry.id:
                made = await kind.create(about, step.inputs)
                identity, outputs = made.id, made.outputs
            else:
                old = {**entry.inputs, **entry.outputs}
                identity, outputs = entry.id, await kind.update(about, entry.id, old, step.inputs)
        except InitFailed as error:
            await self._keep(step.urn, _entry(kind, step, error.resource_id, error.outputs, str(error)))
            raise
        await self._keep(step.urn, _entry(kind, step, identity, outputs), step)

    async def _keep(self, urn: str, entry: Entry | None, step: Step | None = None) -> None:
        """Write an entry; `step` is the one that made it, after which the plan may stay."""
        await self._store.save(urn, entry)
        entries = dict((await self.state()).entries)
        if entry is None:
            entries.pop(urn, None)
        else:
            entries[urn] = entry
        self._state, planned, self._planned = State(entries=entries), self._planned, None
        self._meanwhile.append((step, entry))
        if planned and (left := _after_all(planned[1], [(step, entry)])):
            self._planned = (planned[0], left)

    def _failed(self, urn: str, message: str) -> None:
        before, leaving = self._failures.get(urn), urn in self._leaving
        times = before.times + 1 if before is not None and before.leaving == leaving else 1
        pause = min(_FIRST_PAUSE * 2 ** (times - 1), _LONGEST_PAUSE)
        self._failures[urn] = Failure(
            name=name_of(urn),
            message=self._redact(message),
            times=times,
            again=time.monotonic() + pause,
            leaving=leaving,
        )
        self._planned = None
        _logger.warning("%s failed, again in %.0f s: %s", name_of(urn), pause, self._redact(message))

    def _renew(self) -> None:
        """Resource types remember failures for the time of one update: when nothing runs, begin another one."""
        if not self._running:
            self._types = types()

    def set_message(self, urn: str, message: str) -> None:
        """Stores the latest message of a step."""
        self._said[urn] = self._redact(message)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class _Log:
    """See `provider.status.Log`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def send(
        self, message: str, *, urn: str, ephemeral: bool, debug: bool = False, warning: bool = False
    ) -> None:
        if not debug:
            self._engine.set_message(urn, message)


def _after_all(found: Plan | None, written: Iterable[tuple[Step | None, Entry | None]]) -> Plan | None:
    """The plan when all of these were written; None if another one must be made."""
    for step, entry in written:
        found = found.after(step, entry) if found and step and entry else None
    return found


def _timed(*of: Any) -> Plan:
    with _PLANS.time():
        return plan(*of)


def _leaves_something(kind: ResourceType) -> bool:
    """Whether a resource type has something to delete."""
    return type(kind).delete is not ResourceType.delete


async def _found(kind: ResourceType, about: Context, step: Step, entry: Entry) -> Entry:
    """The resource that a killed attempt had begun to create: creating it again finds it. An installation is not
    repeated only to delete it."""
    begun = replace(step, inputs=entry.inputs)
    if kind.found_by_inputs:
        return _entry(kind, begun, about.identity, {})
    try:
        made = await kind.create(about, entry.inputs)
    except InitFailed as error:
        return _entry(kind, begun, error.resource_id, error.outputs)
    return _entry(kind, begun, made.id, made.outputs)


def _entry(kind: ResourceType, step: Step, identity: str, outputs: Mapping[str, Any], unfinished: str = "") -> Entry:
    return Entry(
        urn=step.urn,
        id=identity,
        inputs=dict(step.inputs),
        outputs=kept(kind, step.inputs, outputs),
        dependencies=step.dependencies,
        unfinished=unfinished,
        order=step.order,
    )
