"""How pulumi-command starts a driver: a program of this package."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from pathlib import Path

_ROOT = Path(__file__).absolute().parents[__name__.count(".")]
"""The directory from which this package is imported; if it is reached by a link, the link's own directory."""


def started(module: str) -> tuple[str, str | None]:
    """The command that starts a module of this package, and its working directory (None: the engine's).

    Both avoid absolute paths where possible. Otherwise the state of each checkout would have another command.
    """
    python, here = Path(sys.executable), Path.cwd()
    # whether Python finds the package without changing the directory
    anywhere = _ROOT in (here, Path(sysconfig.get_path("purelib")))
    if anywhere and python.is_relative_to(here):
        python = python.relative_to(here)
    return f"exec {shlex.quote(str(python))} -m {module}", None if anywhere else str(_ROOT)
