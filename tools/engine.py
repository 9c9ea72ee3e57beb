"""The Pulumi engine: found on PATH or in the user's cache, downloaded from its publisher, or built as a Go tool.

`go.mod` in this folder pins the engine. Its `replace` is copied from the engine's own; the version is set at link time,
because the Automation API refuses an engine without a version. Only the engine is kept of the publisher's archive:
programs run inside our process, so its language hosts are not needed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from binaries.cache import Report, cache_directory
from binaries.errors import ProgramMissing
from binaries.go_tool import GoTool
from binaries.golang import parse
from binaries.program import Program
from binaries.release import Release, architecture
from tools.errors import EngineMissing

HERE = Path(__file__).resolve().parent
PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"
RELEASES = "https://github.com/pulumi/pulumi/releases/download"
RECIPE = "1: CGO_ENABLED=0 -trimpath -s -w"
"""How the engine is built; a part of the cache key."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A usable engine."""

    path: Path
    """The executable."""
    version: str
    """Its version, without the leading v."""


@dataclass(frozen=True, kw_only=True)
class Pins:
    """The versions that tools/go.mod and tools/go.sum pin."""

    engine: str
    """The engine's version, without the leading v."""
    digest: str
    """A hash of both files, the build recipe and the CPU architecture."""


def read_pins() -> Pins:
    """Reads the pins; raises EngineMissing if go.mod does not name the engine."""
    module = (HERE / "go.mod").read_text()
    engine = re.search(r"^\s*(?:require )?github\.com/pulumi/pulumi/pkg/v3 v(\S+)", module, re.MULTILINE)
    if engine is None:
        raise EngineMissing(
            "tools/go.mod does not pin the Pulumi engine",
            why="it has no line for github.com/pulumi/pulumi/pkg/v3",
            remedy="restore tools/go.mod and tools/go.sum from version control",
        )
    key = hashlib.sha256()
    for part in (module.encode(), (HERE / "go.sum").read_bytes(), RECIPE.encode(), platform.machine().encode()):
        key.update(hashlib.sha256(part).digest())
    return Pins(engine=engine[1], digest=key.hexdigest()[:16])


def find() -> Engine | None:
    """The engine on PATH if it is new enough for the SDK, else the cached one; None if there is none."""
    pins = read_pins()
    cached = _program(pins).cached()
    return _on_path(pins) or (Engine(path=cached, version=pins.engine) if cached is not None else None)


def ensure(report: Report) -> Engine:
    """Finds, downloads or builds the engine; raises EngineMissing. `report` gets progress messages."""
    pins = read_pins()
    found = _on_path(pins)
    if found is not None:
        return found
    try:
        return Engine(path=_program(pins).ensure(report), version=pins.engine)
    except ProgramMissing as error:
        raise EngineMissing(
            "the Pulumi engine could neither be downloaded nor built",
            why=str(error),
            remedy=f"install Pulumi {pins.engine} or newer so that `pulumi` is on PATH, and run the same command again",
        ) from error


def _program(pins: Pins) -> Program:
    machine = architecture("x64", "arm64")
    release = f"{RELEASES}/v{pins.engine}"
    return Program(
        name="pulumi",
        version=pins.engine,
        release=Release(
            url=f"{release}/pulumi-v{pins.engine}-linux-{machine}.tar.gz",
            sums=f"{release}/pulumi-{pins.engine}-checksums.txt",
            member="pulumi/pulumi",
            check=("version",),
        )
        if machine is not None
        else None,
        builder=GoTool(
            program="pulumi",
            package=PACKAGE,
            pins=HERE,
            link=("-s", "-w", f"-X {VERSION_VARIABLE}=v{pins.engine}"),
            minutes="2 to 4 minutes",
            place=cache_directory() / "engine" / pins.digest / "pulumi",
        ),
    )


def _on_path(pins: Pins) -> Engine | None:
    found = shutil.which("pulumi")
    if found is None:
        return None
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    result = subprocess.run([found, "version"], capture_output=True, text=True, check=False, env=environment)
    version = result.stdout.strip().lstrip("v")
    parsed, wanted = parse(version), parse(pins.engine)
    usable = result.returncode == 0 and parsed[0] == wanted[0] and parsed >= wanted
    return Engine(path=Path(found), version=version) if usable else None
