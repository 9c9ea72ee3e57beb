"""A kube-apiserver with MetalLB's resource definitions, for tests. Where it cannot be had they are listed skips."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
import trustme

from binaries.errors import ProgramMissing
from binaries.golang import find_go
from lab import etcd
from lab.errors import LabError
from lab.kubernetes import crds, namespaces, programs
from lab.kubernetes.access import Access, define
from lab.kubernetes.etcd import Etcd
from lab.kubernetes.namespaces import finish
from lab.kubernetes.process import free_port
from lab.kubernetes.server import ApiServer, Place


def ready_to_run() -> programs.Programs:
    """What there is to run; skip where there is no Go or no etcd, build what is missing (minutes, once)."""
    if etcd.cached() is None:
        pytest.skip("no Kubernetes API here: there is no etcd")
    try:
        find_go()
    except ProgramMissing as error:
        pytest.skip(f"no Kubernetes API here: {error}")
    return programs.ensure(print)


class Identities:
    """A CA, and PEM files of what it signed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ca = trustme.CA()
        self.ca = directory / "ca.pem"
        self._ca.cert_pem.write_to_path(str(self.ca))

    def issue(self, name: str, group: str | None = None) -> tuple[Path, Path]:
        """Certificate and key of an address, or of a user of a group."""
        host = name if group is None else "client.test"
        leaf = self._ca.issue_cert(host, organization_name=group, common_name=name)
        certificate, key = self._directory / f"{name}.crt", self._directory / f"{name}.key"
        leaf.cert_chain_pems[0].write_to_path(str(certificate))
        leaf.private_key_pem.write_to_path(str(key))
        return certificate, key


class Servers:
    """etcd and one kube-apiserver below a directory, from the start until nothing runs any more."""

    def __init__(self, directory: Path, identities: Identities, *, watch_cache: bool = False) -> None:
        found = ready_to_run()
        self.etcd = Etcd(directory / "etcd", found.etcd)
        place = Place(directory=directory / "api", address="127.0.0.1", port=free_port("127.0.0.1"))
        place.directory.mkdir(mode=0o700, exist_ok=True)
        certificate, key = identities.issue("127.0.0.1")
        for source, target in ((identities.ca, place.clients), (certificate, place.certificate), (key, place.key)):
            shutil.copyfile(source, target)
        identities.issue("tokens")[1].rename(place.service_accounts)
        self.api = ApiServer(place, self.etcd, found.apiserver, ["172.30.0.0/16"], watch_cache=watch_cache)

    def __enter__(self) -> ApiServer:
        try:
            self.etcd.process.start()
            self.api.process.start()
            self.api.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self.api

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End both."""
        self.api.process.stop()
        self.etcd.process.stop()


@contextlib.contextmanager
def ending_namespaces(access: Access) -> Generator[None]:
    """What the lab's service does: `finish`, again and again, in a thread, until the block ends."""
    done = threading.Event()

    def work() -> None:
        with access.client() as client:
            while not done.wait(0.3):
                with contextlib.suppress(LabError):  # somebody changed what was just read: look again
                    finish(client)

    thread = threading.Thread(target=work, daemon=True, name="lab-namespaces")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextlib.contextmanager
def cluster(directory: Path, identities: Identities | None = None) -> Generator[Access]:
    """A running API that knows MetalLB's kinds, as its administrator reaches it."""
    identities = identities or Identities(directory)
    with Servers(directory, identities) as server:
        access = server.access(*identities.issue("admin", "system:masters"))
        define(access, crds.read(crds.METALLB.ensure()))
        with access.client() as client:
            namespaces.make(client, namespaces.METALLB)
        with ending_namespaces(access):
            yield access
