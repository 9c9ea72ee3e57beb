"""Where the program etcd is: the system's, else it is downloaded."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from binaries.cache import Report
from binaries.errors import DownloadFailed
from binaries.program import Program
from binaries.release import Release, architecture
from lab.errors import SetupFailed

PACKAGE = "etcd-server"
"""The Debian package with /usr/bin/etcd."""

VERSION = "3.5.21"
"""The version that is downloaded: the one that Kubernetes 1.33 was released with. The lab works with 3.4 and newer."""

_RELEASES = "https://github.com/etcd-io/etcd/releases/download"


def cached() -> Path | None:
    """The program, if it is there already."""
    found = shutil.which("etcd", path=f"{os.environ.get('PATH', '')}:/usr/bin")
    return Path(found) if found is not None else _program().cached()


def ensure(report: Report) -> Path:
    """The program, downloaded where the system has none. Raises SetupFailed."""
    try:
        return cached() or _program().ensure(report)
    except DownloadFailed as error:
        raise SetupFailed(
            f"etcd is not there: install the package {PACKAGE} (or see why it cannot be downloaded: {error})"
        ) from error


def _program() -> Program:
    machine = architecture("amd64", "arm64")
    folder = f"etcd-v{VERSION}-linux-{machine}"
    release = f"{_RELEASES}/v{VERSION}"
    return Program(
        name="etcd",
        version=VERSION,
        release=Release(url=f"{release}/{folder}.tar.gz", sums=f"{release}/SHA256SUMS", member=f"{folder}/etcd")
        if machine is not None
        else None,
        builder=None,
    )
