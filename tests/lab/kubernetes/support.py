"""A kube-apiserver with MetalLB's resource definitions, for tests. Where it cannot be had they are listed skips."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator
from pathlib import Path

import pytest
import trustme

from lab.errors import SetupFailed
from lab.golang import find_go
from lab.kubernetes import build, crds, namespaces
from lab.kubernetes.access import Access, define
from lab.kubernetes.namespaces import Janitor
from lab.kubernetes.server import Place, Server, etcd


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at the moment."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def ready_to_run() -> None:
    """Skip where there is no Go or no etcd; build what is missing (minutes, once)."""
    try:
        etcd()
        find_go()
    except SetupFailed as error:
        pytest.skip(f"no Kubernetes API here: {error}")
    build.ensure(print)


class Identities:
    """A CA, and PEM files of what it signed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ca = trustme.CA()
        self.ca = directory / "ca.pem"
        self._ca.cert_pem.write_to_path(str(self.ca))

    def issue(self, name: str, group: str | None = None) -> tuple[Path, Path]:
        """Certificate and key of an address, or of a user of a group."""
        leaf = self._ca.issue_cert(name, organization_name=group, common_name=name)
        certificate, key = self._directory / f"{name}.crt", self._directory / f"{name}.key"
        leaf.cert_chain_pems[0].write_to_path(str(certificate))
        leaf.private_key_pem.write_to_path(str(key))
        return certificate, key


def place(directory: Path, identities: Identities) -> Place:
    """A place with free ports."""
    port, etcd_port, etcd_peer_port = free_ports(3)
    certificate, key = identities.issue("127.0.0.1")
    return Place(
        directory=directory / "api",
        port=port,
        etcd_port=etcd_port,
        etcd_peer_port=etcd_peer_port,
        ca=identities.ca,
        certificate=certificate,
        key=key,
    )


@contextlib.contextmanager
def cluster(directory: Path) -> Generator[Access]:
    """A running API that knows MetalLB's kinds, as its administrator reaches it."""
    ready_to_run()
    identities = Identities(directory)
    with Server(place(directory, identities)) as server:
        access = server.access(*identities.issue("admin", "system:masters"))
        define(access, crds.read(crds.ensure()))
        with access.client() as client:
            namespaces.make(client, namespaces.METALLB)
        janitor = Janitor(access)
        janitor.start()
        try:
            yield access
        finally:
            janitor.stop()
