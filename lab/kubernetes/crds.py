"""MetalLB's resource definitions, out of the Go module that MetalLB itself is built from.

The module comes through Go's own download, which checks it against Go's checksum database; the pinned sum is checked
here once more, for those who have switched that off.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.errors import SetupFailed
from lab.golang import find_go
from lab.layout import cache_dir

MODULE = "go.universe.tf/metallb"
VERSION = "v0.15.2"
SUM = "h1:r7KDgJtk3KZe3qb36zRVrVCYHxLR03nPGT+qFXOomJM="

_FOLDER = Path("config") / "crd" / "bases"


def cached() -> Path | None:
    """The directory with the definitions, if they have been fetched."""
    path = _path()
    return path if path.is_dir() else None


def ensure() -> Path:
    """The directory with the definitions, fetched if need be. Raises SetupFailed."""
    path = _path()
    if path.is_dir():
        return path
    source = _download(find_go()) / _FOLDER
    found = sorted(source.glob("*.yaml"))
    if not found:
        raise SetupFailed(f"{MODULE} {VERSION} has no resource definitions in {_FOLDER}")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="fetching-", dir=path.parent))
    try:
        for file in found:
            shutil.copyfile(file, fresh / file.name)
        fresh.chmod(0o755)
        try:
            fresh.rename(path)
        except OSError:
            if not path.is_dir():  # else somebody fetched the same at the same time
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return path


def read(directory: Path) -> list[dict[str, Any]]:
    """The definitions, as objects that an API server takes. Raises SetupFailed for anything else."""
    documents: list[Any] = [
        document for path in sorted(directory.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text())
    ]
    others = [document for document in documents if document.get("kind") != "CustomResourceDefinition"]
    if others or not documents:
        raise SetupFailed(f"{directory} does not hold resource definitions alone: remove it and set up again")
    return documents


def _path() -> Path:
    return cache_dir() / "metallb-crds" / f"{VERSION}-{hashlib.sha256(SUM.encode()).hexdigest()[:12]}"


def _download(go: Path) -> Path:
    """Where the module's files are."""
    wanted = f"{MODULE}@{VERSION}"
    with tempfile.TemporaryDirectory() as empty:  # outside of any module: no go.mod has a say
        answer = subprocess.run(
            [str(go), "mod", "download", "-json", wanted],
            cwd=empty,
            env={**os.environ, "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"},
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        told: dict[str, str] = json.loads(answer.stdout)
    except ValueError:
        told = {}
    if answer.returncode != 0 or "Dir" not in told:
        why = told.get("Error") or answer.stderr.strip() or f"go ended with {answer.returncode}"
        raise SetupFailed(f"{wanted} cannot be downloaded; see whether the Go module proxy can be reached: {why}")
    _same(told)
    return Path(told["Dir"])


def _same(told: dict[str, str], allowed: Sequence[str] = (SUM,)) -> None:
    if told.get("Sum") not in allowed:
        raise SetupFailed(
            f"{MODULE} {VERSION} has checksum {told.get('Sum')}, not {SUM}: it is not what this project was made with"
        )
