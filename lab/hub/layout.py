"""The hub's files. Everything is below the lab's state directory, so that removing it removes the hub."""

from __future__ import annotations

import os
from pathlib import Path

from lab.errors import LabError

_SOCKET_BYTES = 107
"""The longest path of a socket (unix(7))."""


class HubLayout:
    """The paths of one hub."""

    def __init__(self, root: Path) -> None:
        self.root = root
        """Absolute path of its directory (mode 0700)."""
        self.wanted = root / "programs.json"
        """The hub's programs. As long as this file exists, the lab runs a hub."""
        self.ready = root / "ready"
        """There once the node is ready."""
        self.facts = root / "facts.json"
        """The facts for users of the hub, including secrets."""
        self.references = root / "images.json"
        """The references of the images in the registry, by their names, JSON."""
        self.pki = root / "pki"
        """Certificates and keys: `<name>.crt`, `<name>.key`."""
        self.logs = root / "logs"
        """One log per program."""
        self.images = root / "registry"
        """The registry's data."""
        self.containerd = root / "containerd"
        """containerd's data: images and containers."""
        self.kubelet = root / "kubelet"
        """The kubelet's data: volumes."""
        self.volumes = root / "volumes"
        """The content of persistent volumes."""
        self.networks = root / "cni"
        """The configuration of pods' networks."""
        self.leases = root / "leases"
        """Which pod has which address."""
        self.tunables = root / "tunables"
        """Files that stand for settings of the system's kernel."""

    def make(self) -> None:
        """Make the directories; repeating it changes nothing. Raises LabError where their paths are too long."""
        socket = self.kubelet / "pod-resources" / "kubelet.sock"
        if len(os.fsencode(socket)) > _SOCKET_BYTES:
            raise LabError(
                f"the hub cannot be started: the kubelet's socket {socket} would have a path of more than"
                f" {_SOCKET_BYTES} bytes, which Linux does not allow: use a checkout in a directory with a shorter path"
            )
        made = (self.pki, self.logs, self.containerd, self.kubelet, self.volumes, self.networks, self.tunables)
        for path in (self.root, *made):
            path.mkdir(exist_ok=True, mode=0o700)

    def kubeconfig(self, name: str) -> Path:
        """The kubeconfig of the administrator (`admin`) or of a program."""
        return self.root / f"{name}.kubeconfig"

    def config(self, name: str) -> Path:
        """The configuration file of a program."""
        return self.root / name
