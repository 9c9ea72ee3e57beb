"""etcd, one member, behind TLS."""

from __future__ import annotations

from pathlib import Path

from lab.kubernetes.access import NAME
from lab.kubernetes.process import Process, free_port
from lab.layout import write_private
from lab.network import certificates

ADDRESS = "127.0.0.1"


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
