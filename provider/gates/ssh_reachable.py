"""ssh-reachable: every node accepts a login with its pinned host key, and its first boot is over.

A node that is going to reboot is not reachable yet: later steps would lose their connection (`first_boot`). All nodes
are tried at once. The gate also watches the platform's events and the consoles of nodes that do not answer: a node
whose Ignition failed will never answer, so it need not wait for the timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.gates import Check, Observation, Spec
from metal_ipi.provider.gates.causes import recognise
from metal_ipi.provider.gates.first_boot import QUESTION, FirstBoot
from metal_ipi.provider.gates.ssh import NotYet, WrongHostKey, has_route, read_console, run
from metal_ipi.provider.platforms.contract import Event, MachineDriver
from metal_ipi.provider.platforms.registry import open_driver, platform_of
from metal_ipi.provider.resource import Context
from metal_ipi.provider.resources.gate_kinds import GateLogs, GateNode

_METAL = "equinix-metal"
_EVENTS_EVERY = 5.0
_EVENTS_AT_ONCE = 10
"""Nodes per round; each takes two API calls. The least recently asked come first, so that many machines do not cause
many calls."""
_CONSOLES_EVERY = 20.0
_CONSOLE_SECONDS = 2.0
_LOGINS_AT_ONCE = 16
_LOOK = f"cat /proc/sys/kernel/random/boot_id; {QUESTION}"
_CONSOLES_AT_ONCE = 4


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """Nodes that are unchanged since the old specification have passed already."""
    access = GateLogs.of_state(spec)
    passed = set(GateLogs.of_state(old).nodes) if old else set[GateNode]()
    pending = [node for node in access.nodes if node not in passed]
    return SshReachable(context, access, pending) if pending else None


class SshReachable(Check):
    """See `Check`."""

    def __init__(self, context: Context, access: GateLogs, nodes: Sequence[GateNode]) -> None:
        self._context = context
        self._access = access
        self._pending = list(nodes)
        self._passed: dict[str, float] = {}
        self._untried: set[str] = set()
        """Nodes whose IPv6 address cannot be reached because there is no route from here."""
        self._first_boots = {node.name: FirstBoot() for node in nodes}
        self._driver: MachineDriver[Any] | None = None
        self._turn = [node.name for node in nodes]
        self._next_events = 0.0
        self._next_consoles = _CONSOLES_EVERY
        self._logins = asyncio.Semaphore(_LOGINS_AT_ONCE)

    async def look(self, elapsed: float) -> Observation:
        answers = await asyncio.gather(*(self._try(node) for node in self._pending))
        seen = {node.name: answer for node, answer in zip(self._pending, answers, strict=True)}
        for node in self._pending:
            if seen[node.name] is None:
                self._passed[node.name] = elapsed
        self._pending = [node for node in self._pending if seen[node.name] is not None]
        refused = {name: answer for name, answer in seen.items() if answer is not None}
        wrong = {name: str(answer) for name, answer in refused.items() if isinstance(answer, WrongHostKey)}
        if wrong:
            text = _listed(wrong)
            fatal = "another machine answers at this address, or the node did not get its identity: " + text
            return Observation(passed=False, text=text, waiting=tuple(refused), fatal=fatal)
        if not refused:
            text = _passed_text(self._passed)
            if self._untried:
                text += f"; not tried at IPv6, because there is no route from here: {', '.join(sorted(self._untried))}"
            return Observation(passed=True, text=text)
        fatal = await self._failed(elapsed)
        return Observation(
            passed=False, text=_listed({n: str(a) for n, a in refused.items()}), waiting=tuple(refused), fatal=fatal
        )

    async def _try(self, node: GateNode) -> Exception | None:
        """None if the node accepts the login, and its first boot is over; otherwise the reason."""
        async with self._logins:
            try:
                said = (await run(node, self._access, _LOOK)).split()
            except (NotYet, WrongHostKey) as error:
                return error
        if len(said) != 2:
            return NotYet("SSH: an incomplete answer")
        coming = self._first_boots[node.name].awaits(said[1], said[0])
        return NotYet(coming) if coming else await self._try_ipv6(node)

    async def _try_ipv6(self, node: GateNode) -> Exception | None:
        """The same at its IPv6 address, if it has one and there is a route from here."""
        if not node.ipv6:
            return None
        if not has_route(node.ipv6):
            self._untried.add(node.name)
            return None
        try:
            async with self._logins:
                await run(node.model_copy(update={"address": node.ipv6}), self._access, "true")
        except NotYet as error:
            return NotYet(f"at {node.ipv6}: {error}")
        except WrongHostKey as error:
            return error
        return None

    async def _failed(self, elapsed: float) -> str | None:
        """Why waiting longer is useless, according to the platform or a console; None if nothing says so."""
        texts: list[str | None] = []
        if elapsed >= self._next_events:
            self._next_events = elapsed + _EVENTS_EVERY
            texts = await asyncio.gather(*(self._events_of(node) for node in self._next(_EVENTS_AT_ONCE)))
        if elapsed >= self._next_consoles and not any(texts):
            self._next_consoles = elapsed + _CONSOLES_EVERY
            limit = asyncio.Semaphore(_CONSOLES_AT_ONCE)
            texts = await asyncio.gather(*(self._console_of(node, limit) for node in self._pending))
        return "; ".join(filter(None, texts)) or None

    def _next(self, count: int) -> list[GateNode]:
        """The next nodes that do not answer, in rotation."""
        self._turn = self._turn[count:] + self._turn[:count]
        pending = {node.name: node for node in self._pending}
        self._turn = [name for name in self._turn if name in pending]
        return [pending[name] for name in self._turn[:count]]

    async def _events_of(self, node: GateNode) -> str | None:
        # Only Metal has events.
        if not node.machine_id or platform_of(node.machine_id, self._context.settings) != _METAL:
            return None
        if self._driver is None:
            self._driver = open_driver(_METAL, self._context.settings)
        try:
            failed = ignition_failure(await self._driver.events(node.machine_id))
            if failed is None and await self._driver.get(node.machine_id) is None:
                return f"{node.name}: machine {node.machine_id} does not exist any more"
        except ProviderError:
            # The gate is about SSH: it must not fail because the platform does not answer.
            return None
        return None if failed is None else f"{node.name}: {failed}"

    async def _console_of(self, node: GateNode, limit: asyncio.Semaphore) -> str | None:
        if not node.console:
            return None
        try:
            async with limit:
                text = await read_console(node.console, self._access.private_key, seconds=_CONSOLE_SECONDS)
        except NotYet:
            return None
        cause = recognise(text)
        return f"{node.name}: {cause.line}" if cause and cause.fatal else None


def ignition_failure(events: Sequence[Event]) -> str | None:
    """Ignition's own report of its failure in the events (`[stage] Ignition error: …`, coreos/ignition,
    providers/packet).

    The list is newest first. A later success overrides a failure, because a machine may have been reinstalled.
    """
    for event in events:
        if "Ignition status: finished" in event.text:
            return None
        if "Ignition error:" in event.text or (event.state == "failed" and "ignition" in event.text.lower()):
            return event.text.strip()
    return None


def _listed(seen: Mapping[str, str]) -> str:
    """Node names with their reasons; nodes with the same reason are grouped, so that a hundred of them stay
    readable."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in seen.items():
        by_reason.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items())


def _passed_text(passed: Mapping[str, float]) -> str:
    return ", ".join(f"{name} after {seconds:.1f} s" for name, seconds in passed.items())
