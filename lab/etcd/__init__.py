"""etcd: the one on PATH if it is new enough, downloaded from its publisher, or built from its Go module."""

from __future__ import annotations

import re
from pathlib import Path

from binaries import golang
from binaries.cache import Report
from binaries.go_tool import GoTool
from binaries.program import Program, on_path
from binaries.release import Release, architecture

PINS = Path(__file__).parent
OLDEST = (3, 5, 13)
"""Of an older one an API server does not know how far its watches are, so it reads and decodes all objects of a kind
for each list (k8s.io/apiserver, pkg/storage/feature: RequestWatchProgress)."""
_RELEASES = "https://github.com/etcd-io/etcd/releases/download"


def version() -> str:
    """The version that go.mod beside this file pins: the one of Kubernetes 1.33 (k8s.io/kubernetes, cmd/kubeadm:
    DefaultEtcdVersion)."""
    found = re.search(r"^\s*go\.etcd\.io/etcd/server/v3 v(\S+)", (PINS / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, "go.mod pins etcd"
    return found[1]


def cached() -> Path | None:
    """The program, if it is there already."""
    return _on_path() or _program().cached()


def ensure(report: Report) -> Path:
    """The program, downloaded or built if need be. Raises ProgramMissing."""
    return _on_path() or _program().ensure(report)


def _on_path() -> Path | None:
    return on_path("etcd", lambda told: golang.parse(told) >= OLDEST)


def _program() -> Program:
    number, machine = version(), architecture("amd64", "arm64")
    folder, release = f"etcd-v{number}-linux-{machine}", f"{_RELEASES}/v{number}"
    return Program(
        name="etcd",
        version=number,
        release=Release(url=f"{release}/{folder}.tar.gz", sums=f"{release}/SHA256SUMS", member=f"{folder}/etcd")
        if machine is not None
        else None,
        builder=GoTool(program="etcd", package="go.etcd.io/etcd/server/v3", pins=PINS, minutes="about a minute"),
    )
