"""Reads the states of this checkout from the files of the engine's backends, without the engine.

Secrets stay encrypted; nothing here needs them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.errors import RunFailed
from tools.layout import Layout
from tools.state import Deployment


@dataclass(frozen=True, kw_only=True)
class Held:
    """Everything in this checkout's states: none of it is an orphan."""

    stacks: frozenset[str] = frozenset()
    """The stacks with a state in this checkout."""
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """Id of everything in a state to its stack."""
    runs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Run of an existing installation (tag `metal-ipi:run`) to its stack."""


def held(layout: Layout) -> Held:
    """Everything in the states next to this stack's. Raises RunFailed if one cannot be read."""
    ids: dict[str, str] = {}
    runs: dict[str, str] = {}
    files = layout.checkpoints()
    for stack, file in files.items():
        state = _read(file)
        ids |= dict.fromkeys(state.ids(), stack)
        if run := state.run():
            runs[run] = stack
    return Held(stacks=frozenset(files), ids=ids, runs=runs)


def state_of(layout: Layout) -> Deployment:
    """The stack's state; empty if there is none. Raises RunFailed if it cannot be read."""
    return _read(layout.checkpoint) if layout.checkpoint else Deployment(document={})


def _read(file: Path) -> Deployment:
    """Reads a state file of the backend, which has the content of `pulumi stack export` in another structure."""
    try:
        checkpoint = json.loads(file.read_text())["checkpoint"]
        return Deployment(document={"deployment": checkpoint.get("latest") or {}})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunFailed(
            "cannot find out what belongs to the stacks that are up",
            why=f"the state {file} cannot be read: {type(error).__name__} {error}",
            remedy="repair it (its previous version is beside it: .bak), or move it away if its stack no longer exists",
        ) from None
