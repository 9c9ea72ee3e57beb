"""A preview of a project without credentials and network. It keeps nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from pulumi.automation import EngineEvent

from tools import plugin_host
from tools.engine import Engine
from tools.layout import Layout
from tools.program import load_program
from tools.project import python_plugins
from tools.screen import Screen
from tools.session import Session


def rehearse(
    layout: Layout, engine: Engine, screen: Screen, *also: Callable[[EngineEvent], None], pools: Sequence[str] = ()
) -> None:
    """Previews a stack and its pools as if they had no state. `also`: functions that get every event of the engine."""
    plugin_host.start(python_plugins(layout.root, with_stand_ins=True))
    program = load_program(layout.root)
    with tempfile.TemporaryDirectory(prefix="metal-ipi-rehearsal-") as directory:
        rehearsed = Layout(root=layout.root, stack=layout.stack, states=Path(directory))
        Session(rehearsed, engine, program, screen).rehearse(*also)
        for pool in pools:
            screen.line(f"\npool {pool}")
            Session(rehearsed.of_pool(pool), engine, program, screen).rehearse(*also)
