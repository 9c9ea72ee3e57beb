"""A project's program, and a preview of it without credentials, network or anything kept."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tools.engine import Engine
from tools.layout import Layout

if TYPE_CHECKING:  # these take long to import
    from pulumi.automation import EngineEvent

    from tools.screen import Screen


def import_from(root: Path) -> None:
    """Let a project's own packages be imported."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def import_program(root: Path) -> Callable[[], object]:
    """The program of a project: `main` of its stacks/program.py."""
    import_from(root)
    # pulumi-equinix-metal imports pkg_resources; requirements.txt pins the setuptools that still has it.
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated", category=UserWarning)
    from stacks.program import main

    return main


def load_program(root: Path) -> Callable[[], object]:
    """The same, loaded while the engine opens the stack, which takes as long; its errors are raised when it is run."""
    loading = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-program").submit(import_program, root)

    def run() -> object:
        return loading.result()()

    return run


def rehearse(layout: Layout, engine: Engine, screen: Screen, *also: Callable[[EngineEvent], None]) -> None:
    """Preview a stack as if it had no state; `also` are given every event of the engine."""
    from tools import plugin_host
    from tools.project import python_plugins
    from tools.session import Session

    plugin_host.start(python_plugins(layout.root, with_stand_ins=True))
    program = load_program(layout.root)
    with tempfile.TemporaryDirectory(prefix="metal-ipi-rehearsal-") as directory:
        rehearsed = Layout(root=layout.root, stack=layout.stack, states=Path(directory))
        Session(rehearsed, engine, program, screen).rehearse(*also)
