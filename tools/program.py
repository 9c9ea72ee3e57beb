"""A project's program. It may be another checkout's: a preview report compares two, each with its own program.

It is imported once it is asked for: that takes a second of processor time, and the caller says from which checkout.
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
    """Let a project's own packages be imported."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def import_program(root: Path) -> Callable[[], object]:
    """The program of a project: `main` of its stacks/program.py. It finds on PATH what it starts."""
    import_from(root)
    _put_on_path()
    # pulumi-equinix-metal imports pkg_resources; requirements.txt pins the setuptools that still has it.
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated", category=UserWarning)
    try:
        module = import_module("metal_ipi.stacks.program")
    except ModuleNotFoundError as error:
        if error.name != "metal_ipi.stacks":
            raise
        module = import_module("stacks.program")  # a commit of before, which a preview report compares with
    return module.main


def _put_on_path() -> None:
    """Have this process find the nmstatectl in the cache, where there is no other."""
    found = NMSTATECTL.cached()
    if found is not None and shutil.which(NMSTATECTL.name) is None:
        os.environ["PATH"] = os.pathsep.join(filter(None, (os.environ.get("PATH"), str(found.parent))))


def load_program(root: Path) -> Callable[[], object]:
    """The same, loaded while the engine opens the stack, which takes as long; its errors are raised when it is run."""
    loading = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-program").submit(import_program, root)

    def run() -> object:
        return loading.result()()

    return run
