"""A drop-in that frees memory on a machine whose live system forms a cluster: it removes a second copy of the node
image.

From OpenShift 4.19 on, node-image-pull.service pulls the node image into an OSTree repository below /var, which is in
memory, and checks it out beside the repository (openshift/installer, data/data/bootstrap/files/usr/local/bin/
node-image-pull.sh.template). Nothing reads the repository after that. The script deletes it only if the kernel command
line has `coreos.liveiso=`, which a live system from a disc has. A live system from the network keeps 2.4 GiB unused.

We cannot give that argument to a live system from the network: it makes systemd skip `coreos-livepxe-rootfs.service`
(`ConditionKernelCommandLine=!coreos.liveiso`, even for an empty value), and live-generator would mount a disc of that
name (both in coreos/fedora-coreos-config, overlay.d/05core/usr/lib/dracut/modules.d/35coreos-live). So the drop-in adds
a last step to the service; a failure of this step is ignored. A release without the service ignores the drop-in.
"""

from __future__ import annotations

from metal_ipi.components.boot.ignition import NodeFile

_REPOSITORIES = ("/var/ostree-container/repo", "/var/ostreecontainer/repo")
"""Paths in different releases; the second one since installer PR 10133 and its follow-ups."""


def files() -> list[NodeFile]:
    """The drop-in of node-image-pull.service."""
    text = f"[Service]\nExecStartPost=-/usr/bin/rm -rf {' '.join(_REPOSITORIES)}\n"
    return [NodeFile(path="/etc/systemd/system/node-image-pull.service.d/10-metal-ipi.conf", text=text, mode=0o644)]
