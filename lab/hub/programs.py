"""The programs of the hub, either complete or not at all."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from binaries.release import architecture
from lab import etcd
from lab.kubernetes import build
from lab.layout import write_private
from lab.mirror import registry

KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet")
"""Programs of one version of Kubernetes: the one that lab/kubernetes/go.mod pins."""

CONTAINERD = Path("/usr/bin/containerd")
RUNC = Path("/usr/sbin/runc")
PLUGINS = Path("/usr/lib/cni")
NFT = Path("/usr/sbin/nft")
"""Debian's, where its packages have them."""


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Where the programs are that are not Debian's."""

    version: str
    """Kubernetes' own, e.g. `1.33.1`."""
    etcd: Path
    kubernetes: dict[str, Path]
    """By their names in KUBERNETES."""

    @classmethod
    def load(cls, path: Path) -> Programs:
        """Read what `save` wrote."""
        return TypeAdapter(cls).validate_json(path.read_bytes())

    def save(self, path: Path) -> None:
        """Write it down for the hub's own process."""
        write_private(path, TypeAdapter(Programs).dump_json(self))


def refusal() -> str | None:
    """Why a hub can never run here, whatever is installed; None if it can."""
    if os.geteuid() != 0:
        return "its pods take root (run as root for it)"
    if not Path("/etc/debian_version").exists():
        return "containerd, runc, the CNI plug-ins and the registry are Debian's, and this is not a Debian-like system"
    if architecture("amd64", "arm64") is None:
        return f"its images are for x86_64 and aarch64, and this is {platform.machine()}"
    return None


def find() -> Programs | str:
    """All programs, or the reason why they are not complete."""
    if reason := refusal():
        return reason
    store = etcd.cached()
    found = {name: build.cached(name) for name in KUBERNETES}
    present = {name: path for name, path in found.items() if path is not None}
    absent = [str(path) for path in (CONTAINERD, RUNC, PLUGINS / "bridge", registry.PROGRAM, NFT) if not path.exists()]
    absent += [name for name in KUBERNETES if name not in present] + ([] if store else ["etcd"])
    if store is None or absent:
        return f"not there: {', '.join(absent)}; run `make hub`, which installs and builds them"
    return Programs(version=build.pinned(), etcd=store, kubernetes=present)


def ensure(report: Callable[[str], None]) -> Programs:
    """All programs except Debian's; downloaded or built if necessary. Raises SetupFailed or ProgramMissing."""
    store = etcd.ensure(report)
    return Programs(
        version=build.pinned(), etcd=store, kubernetes={name: build.ensure(report, name) for name in KUBERNETES}
    )
