"""What the lab's Kubernetes API consists of: two programs and the resource definitions, all of them or nothing.

Whether a lab has it is decided when the lab starts, by what set-up left: nothing is built or fetched then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import golang
from lab.errors import SetupFailed
from lab.kubernetes import build, crds
from lab.kubernetes.etcd import program as etcd_program


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Where everything is."""

    apiserver: Path
    etcd: Path
    version: str
    """Kubernetes' own."""
    definitions: dict[str, Path]
    """Directories of resource definitions, by what they are of."""


def find() -> Programs | str:
    """All of it, or the reason why there is none."""
    if golang.present() is None:
        return "there is no Go"
    try:
        etcd, apiserver = etcd_program(), build.cached()
        definitions = {each.name: each.cached() for each in crds.ALL}
    except SetupFailed as error:
        return str(error)
    present = {name: directory for name, directory in definitions.items() if directory is not None}
    if apiserver is None or len(present) < len(definitions):
        return "kube-apiserver or its resource definitions are not there: run set-up"
    return Programs(apiserver=apiserver, etcd=etcd, version=build.pinned(), definitions=present)


def ensure(report: Callable[[str], None]) -> Programs:
    """All of it, built and fetched if need be. Raises SetupFailed."""
    etcd = etcd_program()
    apiserver = build.ensure(report)
    return Programs(
        apiserver=apiserver,
        etcd=etcd,
        version=build.pinned(),
        definitions={each.name: each.ensure() for each in crds.ALL},
    )
