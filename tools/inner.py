"""The inner process of each command, which runs the engine. Users do not start it themselves."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tools import last_up, plugin_host, stackfile
from tools.containment import LOOKING, hold_leash
from tools.engine import Engine
from tools.facility_stacks import all_wanted
from tools.layout import Layout
from tools.program import import_program, load_program
from tools.project import python_plugins
from tools.run_config import configure
from tools.screen import Screen
from tools.session import Session


def run_engine(operation: str, layout: Layout, found: Engine, made_of: Sequence[str] | None) -> None:
    """Runs one operation while the outer process holds the pipe (leash). `made_of`: the lab's machines and its
    installer."""
    renewed = os.environ.get("REPLACE", "").replace(",", " ").split() if operation == "up" else ()
    of_pool = operation in ("up", "preview") and layout.pool is not None and not renewed and not all_wanted()
    if of_pool and has_nothing_to_do(layout, found):
        print("nothing has changed since the last `up` of this pool")
        return
    is_lab = stackfile.lab_machines(stackfile.read(layout.stack_file)) is not None
    plugin_host.start(python_plugins(layout.root, with_stand_ins=is_lab))
    sessions: list[Session] = []

    def stop() -> None:
        for session in sessions:
            if session.command is not None:
                session.command.interrupt()

    def kill() -> None:
        for session in sessions:
            if session.command is not None:
                session.command.kill()

    hold_leash(stop, kill)
    if operation in LOOKING:
        with tempfile.TemporaryDirectory(prefix="metal-ipi-") as directory:
            apart = replace(layout, states=Path(directory))
            sessions.append(Session(apart, found, load_program(layout.root), Screen()))
            sessions[0].look(operation)
        return
    session = Session(layout, found, load_program(layout.root), Screen(), renewed)
    sessions.append(session)
    session.run(operation, made_of)


def has_nothing_to_do(layout: Layout, found: Engine) -> bool:
    """Whether nothing has changed since the last `up`."""
    return last_up.left_nothing_to_do(layout, configure(layout, found).settings)


def rehearse_side(root: Path, found: Engine, target: Path, names: list[str]) -> None:
    """Rehearses these stacks for one side of a `preview_report`."""
    from tools.preview_report import rehearsal

    plugin_host.start(python_plugins(root, with_stand_ins=True))
    # Not in a new thread, because a process with threads cannot safely fork.
    rehearsal.rehearse_all(root, names, found, import_program(root), target)
