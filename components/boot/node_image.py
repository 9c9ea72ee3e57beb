"""What frees memory on a machine that forms a cluster in its live system: the node image is there twice for a while.

From OpenShift 4.19 on, node-image-pull.service pulls the node image into an OSTree repository below /var, which is in
memory, and checks it out beside it (openshift/installer, data/data/bootstrap/files/usr/local/bin/
node-image-pull.sh.template). Nothing reads the repository after that. The script deletes it only where the kernel's
command line has `coreos.liveiso=`, as that of a live system from a disc has; one that was booted from the network keeps
2.4 GiB for nothing.

That argument cannot be given to a live system from the network: `coreos-livepxe-rootfs.service` is skipped where it
stands (`ConditionKernelCommandLine=!coreos.liveiso`, even for an empty value), and live-generator mounts a disc of that
name (both in coreos/fedora-coreos-config, overlay.d/05core/usr/lib/dracut/modules.d/35coreos-live). So the service is
given a last step of our own, whose failure fails nothing. A release without the service never reads it.
"""

from __future__ import annotations

from metal_ipi.components.boot.ignition import NodeFile

_REPOSITORIES = ("/var/ostree-container/repo", "/var/ostreecontainer/repo")
"""Where releases have it; the second one since installer PR 10133 and its followers."""


def files() -> list[NodeFile]:
    """The drop-in of node-image-pull.service."""
    text = f"[Service]\nExecStartPost=-/usr/bin/rm -rf {' '.join(_REPOSITORIES)}\n"
    return [NodeFile(path="/etc/systemd/system/node-image-pull.service.d/10-metal-ipi.conf", text=text, mode=0o644)]
