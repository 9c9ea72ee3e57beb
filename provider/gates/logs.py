"""Gathers consoles and journals of nodes when a gate fails, before anything else, while the machines still exist."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from metal_ipi.provider.gates.causes import Cause, recognise
from metal_ipi.provider.gates.ssh import NotYet, WrongHostKey, read_console, run
from metal_ipi.provider.resources.gate_kinds import GateLogs, GateNode

_CONSOLE_SECONDS = 5.0
_JOURNAL_SECONDS = 5.0
_JOURNAL = "journalctl --no-pager --boot --lines=3000 || true"
_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """What was gathered."""

    directory: Path | None
    """The directory of the logs; None if none was configured, or nothing could be read."""
    causes: tuple[tuple[str, Cause], ...]
    """Known causes, by node name."""
    failures: tuple[str, ...]
    """Logs that could not be read, and why."""


async def gather(
    access: GateLogs, gate: str, nodes: Sequence[GateNode], *, redact: Callable[[str], str] = str
) -> Gathered:
    """Read the nodes' consoles, and their journals if SSH answers. A machine that does not answer is not an error.

    `redact` removes secrets from a text before it is written.
    """
    directory = Path(access.directory) / gate if access.directory else None
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(node: GateNode) -> tuple[GateNode, Cause | None, bool, list[str]]:
        async with limit:
            return await _one(access, directory, node, redact)

    found = await asyncio.gather(*(one(node) for node in nodes))
    return Gathered(
        directory=directory if any(written for _, _, written, _ in found) else None,
        causes=tuple((node.name, cause) for node, cause, _, _ in found if cause),
        failures=tuple(f"{node.name}: {why}" for node, _, _, failures in found for why in failures),
    )


async def _one(
    access: GateLogs, directory: Path | None, node: GateNode, redact: Callable[[str], str]
) -> tuple[GateNode, Cause | None, bool, list[str]]:
    texts: list[str] = []
    failures: list[str] = []
    written = False
    if node.console:
        try:
            text = await read_console(node.console, access.private_key, seconds=_CONSOLE_SECONDS)
            texts.append(text)
            written |= write(directory, f"{node.name}.console.log", redact(text))
        except NotYet as error:
            failures.append(f"console: {error}")
    if access.private_key:
        try:
            text = await run(node, access, _JOURNAL, timeout=_JOURNAL_SECONDS)
            written |= write(directory, f"{node.name}.journal.log", redact(text))
        except (NotYet, WrongHostKey) as error:
            failures.append(f"journal: {error}")
    return node, recognise("\n".join(texts)), written, failures


def write(directory: Path | None, name: str, text: str) -> bool:
    """Write a log that only the owner can read, because it may contain secrets. Returns False if that fails: a full
    disk must not hide the gate's own error."""
    if directory is None:
        return False
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return False
    return True
