"""A user's terminal in a copy of the project: what one command exports, and where it changes to, the next one finds."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 400
# Variables of a shell's own, and where the command ran, are no part of what it leaves behind.
_RUN = """\
. {env}
cd "$(cat {cwd})"
{command}
status=$?
export -p >{env}
pwd >{cwd}
exit $status
"""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A command that has ended."""

    command: str
    status: int
    printed: str
    """All of it."""


class Terminal:
    """Runs commands one after the other."""

    def __init__(self, root: Path, environment: Mapping[str, str], within: Sequence[str] = ()) -> None:
        """`within`: a command line that runs another one, somewhere else than here."""
        self._root, self._environment, self._within = root, dict(environment), list(within)
        self._env, self._cwd = root.with_name("terminal.env"), root.with_name("terminal.cwd")
        self._env.write_text("")
        self._cwd.write_text(f"{root}\n")

    def run(self, command: str, stdin: str = "") -> Ran:
        """Run one to its end."""
        script = _RUN.format(env=shlex.quote(str(self._env)), cwd=shlex.quote(str(self._cwd)), command=command)
        done = subprocess.run(
            [*self._within, "sh", "-c", script],
            cwd=self._root,
            env=self._environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
        return Ran(command=command, status=done.returncode, printed=done.stdout)
