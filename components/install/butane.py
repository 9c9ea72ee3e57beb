"""Translates Butane (https://github.com/coreos/butane) into a MachineConfig, with the program `butane`."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

ENDINGS = (".bu", ".butane")
FOLDER = "files"
"""The directory beside Butane files; their `local` and `tree` are relative to it."""
_SECONDS = 60.0
_FOUND = re.compile(r"(?:error|warning) at (?P<path>\S+), line (?P<line>\d+) col \d+: (?P<why>.*)")
_YAML = re.compile(r"yaml: line (?P<line>\d+): (?P<why>.*)")


class ButaneError(ValueError):
    """A file that was not translated; `problems` lists each problem with file, line, cause and what to do."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def translate(program: str, path: Path, where: str) -> str:
    """Translate a Butane file into a MachineConfig (YAML). `where` names the file in messages.

    Raises ButaneError, also for warnings: most of them are about a key that Butane does not know.
    """
    found = shutil.which(program)
    if found is None:
        raise ButaneError(
            f"{where}: it is Butane, and there is no program '{program}' to translate it -> put butane on PATH, or name"
            f" it as install.butane; or give what `butane {path.name}` prints"
        )
    files = path.parent / FOLDER
    command = [found, "--strict", *(["--files-dir", str(files)] if files.is_dir() else []), str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ButaneError(f"{where}: {program} cannot be run: {error} -> see whether install.butane is it") from None
    if done.returncode != 0:
        raise ButaneError(*(f"{where}{each} -> correct the Butane there" for each in _problems(done.stderr)))
    if not re.search(r"^kind: MachineConfig$", done.stdout, re.MULTILINE):
        raise ButaneError(
            f"{where}: it is not a MachineConfig -> set variant: openshift, and the version of the release"
        )
    return done.stdout


def _problems(said: str) -> list[str]:
    """Butane's messages, each with its line number if it has one."""
    lines = [
        f":{found['line']}: {found['why']} ({found['path']})" for found in map(_FOUND.match, said.splitlines()) if found
    ]
    if lines:
        return lines
    found = _YAML.search(said)
    return [f":{found['line']}: {found['why']}" if found else f": {' '.join(said.split())}"]
