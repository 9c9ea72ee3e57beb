"""`make preview-report BASE=<commit>`: the git commands, processes and files of the report."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.engine import Engine
from tools.errors import StackError
from tools.layout import ROOT
from tools.policies import OFF
from tools.preview_report import facilities
from tools.preview_report.markdown import Facility, report
from tools.preview_report.rehearsal import JSON, Rehearsal


def write(root: Path, base: str, target: Path, engine: Engine, *, pictures: str = "") -> Path:
    """Writes `report.md`, its pictures and `facilities.json` (the names of the affected stacks) to a directory, which
    is emptied first; returns the path of the report.

    Compares the commit `base` with the work tree. Raises StackError if the commit does not exist.
    """
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}", of=base).strip()
    paths = _git(root, "diff", "--name-only", "--no-renames", "-z", commit, "--").split("\0")
    paths += _git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    with tempfile.TemporaryDirectory(prefix="metal-ipi-base-") as directory:
        old = Path(directory) / "project"
        _extract(root, commit, old)
        here, there = _stacks(root), _stacks(old)
        stacks = facilities.changed([path for path in paths if path], here | there)
        found = _rehearse([(old, sorted(there & set(stacks))), (root, sorted(here & set(stacks)))], engine)
    compared = [Facility(stack=stack, before=found[0].get(stack), after=found[1].get(stack)) for stack in stacks]
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for facility in compared:
        for name, picture in facility.pictures.items():
            (target / name).write_text(picture)
    (target / "facilities.json").write_text(json.dumps(stacks) + "\n")
    file = target / "report.md"
    file.write_text(report(compared, _named(base, commit), pictures=pictures))
    return file


def _rehearse(sides: Sequence[tuple[Path, list[str]]], engine: Engine) -> list[dict[str, Rehearsal]]:
    """Rehearses both sides in parallel, each in its own process with its own program, but with this project's tools."""
    with tempfile.TemporaryDirectory(prefix="metal-ipi-report-") as directory:
        running: list[tuple[subprocess.Popen[str], Path]] = []
        for number, (root, stacks) in enumerate(sides):
            target = Path(directory) / str(number)
            target.mkdir()
            command = [sys.executable, "-m", "tools", "--root", str(root), "rehearse", "--target", str(target)]
            command += ["--engine", str(engine.path), "--engine-version", engine.version, *stacks]
            environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONSAFEPATH": "1"}
            if number == 0:  # policies judge only the new side
                environment["POLICY"] = OFF
            running.append((subprocess.Popen(command, cwd=root, env=environment, text=True), target))
        statuses = [process.wait() for process, _ in running]
        if any(statuses):
            raise StackError("a preview did not end", why="its output is above")
        return [
            {file.stem: JSON.validate_json(file.read_bytes()) for file in sorted(target.glob("*.json"))}
            for _, target in running
        ]


def _extract(root: Path, commit: str, target: Path) -> None:
    """Extracts the project of a commit, but with a link to this project's tools."""
    archive = subprocess.run(["git", "archive", commit], cwd=root, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(target, filter="data")
    shutil.rmtree(target / "tools", ignore_errors=True)
    (target / "tools").symlink_to(ROOT / "tools", target_is_directory=True)


def _stacks(root: Path) -> set[str]:
    found = (facilities.stack_of(path.relative_to(root).as_posix()) for path in root.glob("stacks/Pulumi.*.yaml"))
    return {stack for stack in found if stack is not None}


def _named(base: str, commit: str) -> str:
    return base if commit.startswith(base) else f"{base} ({commit[:12]})"


def _git(root: Path, *arguments: str, of: str = "") -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except OSError as error:
        raise StackError("git does not run", why=str(error), remedy="install git") from error
    if done.returncode != 0:
        raise StackError(
            f"there is no commit '{of}' here" if of else f"`git {arguments[0]}` failed",
            why=done.stderr.strip() or "git does not have it",
            remedy="name one with BASE=<commit>; in a shallow clone, `git fetch` it first",
        )
    return done.stdout
