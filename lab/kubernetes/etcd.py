"""etcd, one member, behind TLS. The program is the system's, else it is downloaded."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from binaries.cache import Report
from binaries.errors import DownloadFailed
from binaries.program import Program
from binaries.release import Release, architecture
from lab.errors import SetupFailed
from lab.kubernetes.access import NAME
from lab.kubernetes.process import Process, free_port
from lab.layout import write_private
from lab.network import certificates

PACKAGE = "etcd-server"
"""The Debian package with /usr/bin/etcd."""

VERSION = "3.5.21"
"""The version that is downloaded: the one that Kubernetes 1.33 was released with. The lab works with 3.4 and newer."""

ADDRESS = "127.0.0.1"

_RELEASES = "https://github.com/etcd-io/etcd/releases/download"


def cached() -> Path | None:
    """The program, if it is there already."""
    found = shutil.which("etcd", path=f"{os.environ.get('PATH', '')}:/usr/bin")
    return Path(found) if found is not None else _program().cached()


def ensure(report: Report) -> Path:
    """The program, downloaded where the system has none. Raises SetupFailed."""
    try:
        return cached() or _program().ensure(report)
    except DownloadFailed as error:
        raise SetupFailed(
            f"etcd is not there: install the package {PACKAGE} (or see why it cannot be downloaded: {error})"
        ) from error


def _program() -> Program:
    machine = architecture("amd64", "arm64")
    folder = f"etcd-v{VERSION}-linux-{machine}"
    release = f"{_RELEASES}/v{VERSION}"
    return Program(
        name="etcd",
        version=VERSION,
        release=Release(url=f"{release}/{folder}.tar.gz", sums=f"{release}/SHA256SUMS", member=f"{folder}/etcd")
        if machine is not None
        else None,
        builder=None,
    )


class Etcd:
    """etcd with its data and keys in a directory, so that it can be started again; on loopback ports of its own.

    Any user of the machine could read every Secret there: it answers only to whoever holds the cluster's own pair of
    certificate and key. API servers show that pair to the lab, which asks for them by NAME: whatever certificate a
    cluster has given them, or has let expire.
    """

    def __init__(self, directory: Path, executable: Path) -> None:
        self.directory = directory
        self.ca, self.certificate, self.key = (directory / name for name in ("lab-ca.crt", "lab.crt", "lab.key"))
        """PEM files."""
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.certificate.exists():
            authority = certificates.authority("Kubernetes authority")
            write_private(self.ca, authority.cert_pem.bytes())
            certificates.write(directory / "lab", authority.issue_cert(NAME, ADDRESS))
        self.url, self.peer_url = (f"https://{ADDRESS}:{free_port(ADDRESS)}" for _ in range(2))
        self.process = Process("etcd", self._command(executable), directory / "etcd.log")

    def _command(self, executable: Path) -> list[str]:
        return [
            str(executable),
            "--name=lab",
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={self.peer_url}",
            f"--initial-advertise-peer-urls={self.peer_url}",
            f"--initial-cluster=lab={self.peer_url}",
            *(f"--{kind}cert-file={self.certificate}" for kind in ("", "peer-")),
            *(f"--{kind}key-file={self.key}" for kind in ("", "peer-")),
            *(f"--{kind}trusted-ca-file={self.ca}" for kind in ("", "peer-")),
            *(f"--{kind}client-cert-auth" for kind in ("", "peer-")),
            "--logger=zap",
            "--log-level=warn",
        ]
