"""The paths of a lab's files: all are in one state directory."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class Layout:
    """The files of one lab. Everything is under `state`, so that removing it removes the lab."""

    def __init__(self, state: Path) -> None:
        self.state = state
        """Absolute path of the state directory (mode 0700)."""
        self.lock = state / "supervisor.lock"
        """Held by the supervisor as long as it lives; says who and where it is (see lab.supervision)."""
        self.status = state / "status.json"
        """What the supervisor last said about its services, JSON."""
        self.facts = state / "facts.json"
        """The facts for users of the lab, JSON with secrets, mode 0600."""
        self.ca = state / "ca.pem"
        """The certificate, PEM, of the authority that stands for those that every system trusts."""
        self.facility_ca = state / "facility-ca.pem"
        """The certificate, PEM, of the facility's own authority, which no machine trusts by itself."""
        self.tls = state / "tls"
        """Keys and certificates of the lab's servers: `<name>.crt`, `<name>.key`."""
        self.ssh = state / "ssh"
        """SSH keys of the upload server."""
        self.logs = state / "logs"
        """One log per service, and the boot server's request log."""
        self.dns = state / "dns"
        """Configuration, zones and journal of the DNS server."""
        self.boot = state / "boot"
        """The tree that the boot file server serves."""
        self.kubernetes = state / "kubernetes"
        """The data of the clusters' API servers, one directory per cluster."""
        self.rack = state / "bmc"
        """What the BMCs of a rack keep, and the socket through which the lab's command line reaches them."""
        self.api_ready = state / "metal_api.ready"
        """There once the Metal API answers."""
        self.hub = state / "hub"
        """The hub's files, where there is one (see lab.hub.layout)."""
        self.mirror = state / "mirror"
        """The data of the site's registry of images, in a disconnected lab."""
        self.witness = state / "witness.json"
        """Which names were looked up, and what was sent to addresses outside, in a lab that is disconnected: JSON."""
        self.api_servers = state / "kubernetes.json"
        """Where machines have their API servers run: what the stand-in for openshift-install tells them, JSON."""
        self.etc = state / "etc"
        """The files that replace their namesakes under /etc inside the lab."""
        self.tmp = state / "tmp"
        """TMPDIR of the lab's services, so that no temporary file of theirs is anywhere else."""
        self.removed = state.with_name(f".{state.name}.removed")
        """The name of the state directory while it is being removed, so that an interrupted removal is not used as a
        state."""

    @classmethod
    def of(cls, state: str | os.PathLike[str]) -> Layout:
        """The layout under `state`, made absolute: the lab's processes have other working directories."""
        return cls(Path(state).resolve())

    def log(self, service: str) -> Path:
        """The log of one service."""
        return self.logs / f"{service}.log"

    def make(self) -> None:
        """Make the directories; repeating it changes nothing."""
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in (self.tls, self.ssh, self.logs, self.dns, self.boot, self.etc, self.tmp):
            path.mkdir(exist_ok=True, mode=0o700)
        (self.boot / "artifacts").mkdir(exist_ok=True)
        (self.boot / "streams").mkdir(exist_ok=True)


@contextmanager
def short_path(directory: Path, name: str) -> Generator[str, None, None]:
    """A path to a socket in `directory`, short whatever the directory's: the kernel takes 107 bytes."""
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def write_private(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` in one step, readable by its owner only: a reader sees the old or the new file."""
    data = content.encode() if isinstance(content, str) else content
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
