"""Imports the program of a project. It may be in another checkout: a preview report compares two, each with its own
program.

The import takes a second of processor time, so it happens only when needed.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from binaries.crate import NMSTATECTL


def import_from(root: Path) -> None:
    """Adds a project to the import path."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def import_program(root: Path) -> Callable[[], object]:
    """The program of a project: `main` of its stacks/program.py. Also puts the tools that the program starts on
    PATH."""
    import_from(root)
    _put_on_path()
    # pulumi-equinix-metal imports pkg_resources; requirements.txt pins a setuptools that still contains it.
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated", category=UserWarning)
    try:
        module = import_module("metal_ipi.stacks.program")
    except ModuleNotFoundError as error:
        if error.name != "metal_ipi.stacks":
            raise
        module = import_module("stacks.program")  # an old commit, with which a preview report compares
    return module.main


def _put_on_path() -> None:
    """Adds the nmstatectl in the cache to PATH, if there is no other."""
    found = NMSTATECTL.cached()
    if found is not None and shutil.which(NMSTATECTL.name) is None:
        os.environ["PATH"] = os.pathsep.join(filter(None, (os.environ.get("PATH"), str(found.parent))))


def load_program(root: Path) -> Callable[[], object]:
    """Loads the program in the background while the engine opens the stack, which takes as long. Import errors are
    raised when the program runs."""
    loading = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-program").submit(import_program, root)

    def run() -> object:
        return loading.result()()

    return run
