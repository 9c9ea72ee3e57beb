"""What the states of this checkout hold: read from the files of the engine's backends, without the engine.

Secrets stay as they are; nothing here is asked for that is one.
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
    """What is no orphan, whatever it looks like."""

    stacks: frozenset[str] = frozenset()
    """The stacks that have their state here."""
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    """The id of everything in a state → its stack."""
    runs: Mapping[str, str] = field(default_factory=dict[str, str])
    """What marks the things of an installation that is up (`metal-ipi:run`) → its stack."""


def held(layout: Layout) -> Held:
    """What the stacks hold that have their state beside this one's. Raises RunFailed when one cannot be read."""
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
    """The stack's state; empty where it has none. Raises RunFailed when it cannot be read."""
    return _read(layout.checkpoint) if layout.checkpoint else Deployment(document={})


def _read(file: Path) -> Deployment:
    """The backend's file holds what `pulumi stack export` prints, in other wrapping."""
    try:
        checkpoint = json.loads(file.read_text())["checkpoint"]
        return Deployment(document={"deployment": checkpoint.get("latest") or {}})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunFailed(
            "cannot tell what belongs to the stacks that are up",
            why=f"the state {file} cannot be read: {type(error).__name__} {error}",
            remedy="mend it (beside it is what it was before: .bak), or move it away if its stack is no more",
        ) from None
