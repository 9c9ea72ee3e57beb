"""How much memory and how many processors machines need, with the sources of the figures.

Documented minima: OpenShift, «Minimum resource requirements for cluster installation» (openshift-docs,
modules/installation-minimum-resource-requirements.adoc) and, for a single node,
modules/install-sno-requirements-for-installing-on-a-single-node.adoc. The values for an arbiter come from the assisted
installer (openshift/assisted-service, data/default_hw_requirements.json).

A machine that forms the cluster in a live system needs more from 4.19 on, because everything that it writes is in
memory:

- /var of a live system is half of the memory (coreos/fedora-coreos-config, live-generator: `size=50%`).
- From 4.19 on node-image-pull.sh pulls the node image into an OSTree repository below /var and checks it out there
  (openshift/installer, data/data/bootstrap/files/usr/local/bin/node-image-pull.sh.template).
- With what bootkube pulls later, the measured peak in /var was 9.4 GiB (openshift/installer PR 10133), with the
  repository deleted after the checkout. The script deletes it only in live systems from a disc; ours delete it too
  (components/boot/node_image.py). Twice 9.4 GiB is 19 GiB.
- Releases with that change keep the checkout in a tmpfs of its own, which moves the memory but saves little of it: CI
  of those releases gives 17658 MiB to machines whose root file system is on a disc (openshift/release PR 80334), and a
  machine that was booted from the network also has that file system in memory, 1.2 GiB. So the figure is the same for
  them.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1024
"""One GiB in MiB."""
_NODE_IMAGE_MINOR = 19
"""The first 4.x release whose bootstrap pulls the node image."""
_DISK_GB, _ARBITER_DISK_GB = 100, 50
"""In 10^9 bytes. The assisted installer requires both; OpenShift's documentation requires the first."""
LIVE_MIB = 19 * GIB
"""Memory of a machine that forms a cluster in its live system."""
LOCAL_VM_MIB = 24 * GIB
"""The default of a virtual bootstrap machine, as in the CI of the agent-based installer (openshift-metal3/dev-scripts
PR 1909)."""
_DOCUMENTATION, _ASSISTED = "OpenShift's documentation", "the assisted installer"
_LIVE = (
    "from 4.19 on the node image is unpacked in memory (openshift/installer PR 10133: 9.4 GiB in half of the memory)"
)


@dataclass(frozen=True, kw_only=True)
class Least:
    """The minimum requirements of a machine."""

    memory_mib: int
    memory_source: str
    """Where the figure comes from, for people."""
    cpus: int
    """As OpenShift's documentation counts them: cores, or threads if there are several per core."""
    disk_gb: int
    """Size of the disk that it is installed to, in 10^9 bytes."""
    asked_by: str
    """Who requires these processors and this disk, for people."""


def least(role: str, release: str, *, live: bool, alone: bool = False) -> Least:
    """The minimum requirements of a machine.

    Args:
        role: `bootstrap`, `control-plane`, `arbiter` or `worker`.
        release: of OpenShift, `4.19.0`.
        live: whether it forms the cluster in its live system, as a bootstrap machine or as a single node.
        alone: whether it is the cluster's only machine.
    """
    memory, cpus = (8 * GIB, 2) if role in ("arbiter", "worker") else (16 * GIB, 8 if alone else 4)
    disk, asked_by = (_ARBITER_DISK_GB, _ASSISTED) if role == "arbiter" else (_DISK_GB, _DOCUMENTATION)
    source = f"the least that {asked_by} asks for"
    if live:
        memory, cpus = max(memory, 16 * GIB), max(cpus, 4)
        if _minor(release) >= _NODE_IMAGE_MINOR:
            memory, source = LIVE_MIB, _LIVE
    return Least(memory_mib=memory, memory_source=source, cpus=cpus, disk_gb=disk, asked_by=asked_by)


def _minor(release: str) -> int:
    """The minor version: 19 for 4.19.0. An unreadable release counts as a new one."""
    parts = release.split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else _NODE_IMAGE_MINOR
