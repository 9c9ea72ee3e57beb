"""The real openshift-install.

One on PATH is taken when it is of the wanted release; else it is built from its Go module, with the `replace` lines of
that. What it is built from lacks the platforms' Terraform and Cluster API providers, which platform none never calls.
The published program carries its data inside; this one has them in a folder beside it, named by OPENSHIFT_INSTALL_DATA.

Source: openshift/installer, hack/build.sh and pkg/version.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from binaries.cache import Report
from binaries.go_tool import GoTool
from binaries.program import told
from lab.openshift.real import RELEASE

PROGRAM = "openshift-install"
_MODULE = "github.com/openshift/installer"

PINS = Path(__file__).with_name("openshift-install")
_TOOL = GoTool(
    program=PROGRAM,
    package=f"{_MODULE}/cmd/openshift-install",
    pins=PINS,
    link=("-s", "-w", f"-X {_MODULE}/pkg/version.Raw=v{RELEASE}", f"-X {_MODULE}/pkg/version.Commit=none"),
    minutes="about 12 minutes",
)
_WRAPPER = """\
#!/bin/sh
OPENSHIFT_INSTALL_DATA='{data}' exec '{program}' "$@"
"""


def ensure(report: Report) -> Path:
    """The program of release `RELEASE`: from PATH, else built if need be. Raises ProgramMissing."""
    found = on_path()
    if found is not None:
        return found
    program = _TOOL.ensure(report)
    finished = program.with_name("complete")
    if not finished.exists():
        _complete(program, finished)
    return finished / PROGRAM


def cached() -> Path | None:
    """The same, if nothing has to be built."""
    found = on_path()
    if found is not None:
        return found
    program = _TOOL.cached()
    wrapper = program.with_name("complete") / PROGRAM if program is not None else None
    return wrapper if wrapper is not None and wrapper.exists() else None


def source() -> Path:
    """The folder of its Go module. Raises ProgramMissing."""
    return _TOOL.source(_MODULE)


def on_path() -> Path | None:
    """The program on PATH, if it is of release `RELEASE`."""
    found = shutil.which(PROGRAM)
    return Path(found) if found is not None and release(Path(found)) == RELEASE else None


def release(program: Path) -> str | None:
    """The release that an openshift-install is of, e.g. `4.19.0`; None for what is not an openshift-install."""
    words = told(program, "version").partition("\n")[0].split()
    return words[1].removeprefix("v") if len(words) == 2 else None


def place(root: Path) -> None:
    """Put the program into another root file system, as /usr/local/bin/openshift-install. It is there already
    (`ensure`)."""
    found, target = on_path(), root / "usr/local/bin" / PROGRAM
    target.parent.mkdir(parents=True)
    if found is not None:
        shutil.copy(found, target)
        return
    program = _TOOL.cached()
    assert program is not None, "ensure() built it"
    folder = Path("/usr/local/lib", PROGRAM)
    copies = root / folder.relative_to("/")
    shutil.copytree(program.with_name("complete") / "data", copies / "data")
    shutil.copy(program, copies)
    _wrap(folder / PROGRAM, folder / "data", target)


def _wrap(program: Path, data: Path, wrapper: Path) -> None:
    """Write a program that starts the installer and tells it where its data are."""
    wrapper.write_text(_WRAPPER.format(data=data, program=program))
    wrapper.chmod(0o755)


def _complete(program: Path, finished: Path) -> None:
    """Put the installer's data beside it, and a program before it that names them."""
    fresh = Path(tempfile.mkdtemp(prefix="completing-", dir=program.parent))
    try:
        data = source() / "data" / "data"
        shutil.copytree(data, fresh / "data", copy_function=shutil.copyfile)
        for folder in (fresh, *(path for path in fresh.rglob("*") if path.is_dir())):
            folder.chmod(0o755)  # the module cache is read-only
        _wrap(program, finished / "data", fresh / PROGRAM)
        try:
            fresh.rename(finished)
        except OSError:
            if not os.access(finished / PROGRAM, os.X_OK):  # else somebody did the same at the same time
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
