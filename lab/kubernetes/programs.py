"""What the lab's Kubernetes API consists of: two programs and the resource definitions, all of them or nothing.

Whether a lab has it is decided when the lab starts, by what set-up left: nothing is built or fetched then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import etcd, metallb, olm
from lab.kubernetes import build, crds
from lab.olm import Olm


@dataclass(frozen=True, kw_only=True)
class Programs:
    """The paths of the programs; also in the lab's facts."""

    version: str
    """Kubernetes' own, e.g. `1.33.1`."""
    apiserver: Path
    etcd: Path
    definitions: dict[str, Path]
    """Directories of resource definitions that every cluster has, by what they are of."""
    metallb: Path | None = None
    """The directory of MetalLB's manifest; None if MetalLB cannot run, so that addresses of Services are not
    announced."""
    olm: Olm | None = None
    """The Operator Lifecycle Manager; None where it is not asked for."""
    shared: bool = False
    """Whether the machines of a cluster share one API server: many clusters take less memory."""


def find() -> Programs | str:
    """All programs, or the reason why they are not complete."""
    store, apiserver = etcd.cached(), build.cached()
    definitions = {each.name: each.cached() for each in crds.ALL}
    present = {name: directory for name, directory in definitions.items() if directory is not None}
    if store is None:
        return "etcd is not there: run set-up"
    if apiserver is None or len(present) < len(definitions):
        return "kube-apiserver or its resource definitions are not there: run set-up"
    return Programs(
        apiserver=apiserver,
        etcd=store,
        version=build.pinned(),
        definitions=present,
        metallb=metallb.cached(),
        olm=olm.cached(),
    )


def ensure(report: Callable[[str], None]) -> Programs:
    """All programs, downloaded or built if necessary. Raises SetupFailed or ProgramMissing."""
    store = etcd.ensure(report)
    apiserver = build.ensure(report)
    return Programs(
        apiserver=apiserver,
        etcd=store,
        version=build.pinned(),
        definitions={each.name: each.ensure() for each in crds.ALL},
        metallb=metallb.cached(),
        olm=olm.cached(),
    )
