"""How pulumi-command starts a driver, a program of this package."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from pathlib import Path

_ROOT = Path(__file__).absolute().parents[__name__.count(".")]
"""The directory that this package is imported from: not that of a link's target."""


def started(module: str) -> tuple[str, str | None]:
    """The command that starts a module of this package, and where it runs: None where the engine does.

    Both name no path of this machine where they need none: else the state of every checkout had another command.
    """
    python, here = Path(sys.executable), Path.cwd()
    anywhere = _ROOT in (here, Path(sysconfig.get_path("purelib")))  # Python finds this package
    if anywhere and python.is_relative_to(here):
        python = python.relative_to(here)
    return f"exec {shlex.quote(str(python))} -m {module}", None if anywhere else str(_ROOT)
