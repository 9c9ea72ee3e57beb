"""Where a lab keeps what it keeps: one state directory, nothing outside of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path


@dataclass(frozen=True)
class Layout:
    """The files of one lab. Everything is under `state`, so that removing it removes the lab."""

    state: Path
    """Absolute path of the state directory (mode 0700)."""

    @classmethod
    def of(cls, state: str | os.PathLike[str]) -> Layout:
        """The layout under `state`, made absolute: the lab's processes have other working directories."""
        return cls(Path(state).resolve())

    @property
    def lock(self) -> Path:
        """Held by the supervisor as long as it lives; says who and where it is (see lab.supervision)."""
        return self.state / "supervisor.lock"

    @property
    def status(self) -> Path:
        """What the supervisor last said about its services, JSON."""
        return self.state / "status.json"

    @property
    def facts(self) -> Path:
        """What a user of the lab needs to know, JSON with secrets, mode 0600."""
        return self.state / "facts.json"

    @property
    def ca(self) -> Path:
        """The certificate, PEM, of the authority that stands for those that every system trusts."""
        return self.state / "ca.pem"

    @property
    def facility_ca(self) -> Path:
        """The certificate, PEM, of the facility's own authority, which no machine trusts by itself."""
        return self.state / "facility-ca.pem"

    @property
    def tls(self) -> Path:
        """Keys and certificates of the lab's servers: `<name>.crt`, `<name>.key`."""
        return self.state / "tls"

    @property
    def ssh(self) -> Path:
        """SSH keys of the upload server."""
        return self.state / "ssh"

    @property
    def logs(self) -> Path:
        """One log per service, and the boot server's request log."""
        return self.state / "logs"

    @property
    def dns(self) -> Path:
        """Configuration, zones and journal of the DNS server."""
        return self.state / "dns"

    @property
    def boot(self) -> Path:
        """The tree that the boot file server serves."""
        return self.state / "boot"

    @property
    def kubernetes(self) -> Path:
        """What the clusters' API servers keep, one directory per cluster."""
        return self.state / "kubernetes"

    @property
    def rack(self) -> Path:
        """What the BMCs of a rack keep, and the socket through which the lab's command line reaches them."""
        return self.state / "bmc"

    @property
    def api_servers(self) -> Path:
        """Where machines have their API servers run: what the stand-in for openshift-install tells them, JSON."""
        return self.state / "kubernetes.json"

    @property
    def etc(self) -> Path:
        """The files that replace their namesakes under /etc inside the lab."""
        return self.state / "etc"

    @property
    def tmp(self) -> Path:
        """TMPDIR of the lab's services, so that no temporary file of theirs is anywhere else."""
        return self.state / "tmp"

    @property
    def removed(self) -> Path:
        """What the state directory is called while it is being removed: an interrupted removal is no state."""
        return self.state.with_name(f".{self.state.name}.removed")

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


def cache_dir() -> Path:
    """The per-user cache for what is built or downloaded once, whatever the state directory."""
    return user_cache_path("metal-ipi", appauthor=False)


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
