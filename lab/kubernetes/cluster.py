"""A cluster as the lab runs it: one etcd, an API server for each machine that asks, and what every cluster has.

etcd starts with the first API server and ends with the last; its data stays until the lab is taken down.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import shutil
from collections.abc import AsyncGenerator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

import httpx

from lab.errors import LabError
from lab.facts import Kubernetes
from lab.kubernetes import crds, namespaces
from lab.kubernetes.access import Access, apply, define
from lab.kubernetes.etcd import Etcd
from lab.kubernetes.process import free_port
from lab.kubernetes.server import ApiServer, Place
from lab.layout import write_private

_LOG = logging.getLogger(__name__)
_TEND_EVERY_SECONDS = 1.0
_BOOTSTRAPPER = "system-bootstrap-node-bootstrapper"
_BOOTSTRAPPERS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": _BOOTSTRAPPER},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper"},
    "subjects": [
        {"kind": "ServiceAccount", "name": "node-bootstrapper", "namespace": "openshift-machine-config-operator"},
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers"},
    ],
}
"""Who may ask for a node's certificate, in OpenShift's words."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: str
    key: str

    @classmethod
    def of(cls, told: object) -> Pair:
        """Out of a message; raises LabError."""
        return cls(**_texts(told, cls))


@dataclass(frozen=True, kw_only=True)
class Hello:
    """What a machine says of the API server that it wants."""

    clients: str
    """The CAs that sign clients' certificates, PEM."""
    service_account: str
    """The private key of service accounts, PEM: the secret that makes a machine one of its cluster's."""
    controller: Pair
    """As whom the lab may ask."""
    certificate: Pair
    """The API server's."""

    @classmethod
    def of(cls, line: bytes) -> Hello:
        """Out of a message; raises LabError."""
        told = message(line)
        return cls(
            clients=str(told.get("clients") or ""),
            service_account=str(told.get("serviceAccount") or ""),
            controller=Pair.of(told.get("controller")),
            certificate=Pair.of(told.get("certificate")),
        )

    @property
    def cluster(self) -> str:
        """What tells the cluster from others. Only its own machines can say it."""
        if "PRIVATE KEY" not in self.service_account:
            raise LabError("serviceAccount is no private key")
        return hashlib.sha256(self.service_account.encode()).hexdigest()[:16]


def message(line: bytes) -> dict[str, Any]:
    """One line of a machine; raises LabError."""
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise LabError("a machine has to speak JSON objects, one a line")
    return cast("dict[str, Any]", told)


def _texts(told: object, kind: type[Pair]) -> dict[str, str]:
    known = cast("dict[str, object]", told) if isinstance(told, dict) else {}
    found = {field.name: known.get(field.name) for field in fields(kind)}
    missing = [name for name, value in found.items() if not isinstance(value, str) or not value]
    if missing:
        raise LabError(f"a certificate comes with {' and '.join(missing)}")
    return cast("dict[str, str]", found)


class Member:
    """One machine's API server."""

    def __init__(self, directory: Path, address: str, etcd: Etcd, executable: Path, hello: Hello) -> None:
        directory.mkdir(mode=0o700)
        self._directory = directory
        place = Place(directory=directory, address=address, port=free_port(address))
        write_private(place.clients, hello.clients)
        write_private(place.service_accounts, hello.service_account)
        self.server = ApiServer(place, etcd, executable)
        self.renew(hello.certificate, hello.controller)

    @property
    def address(self) -> str:
        """Where it is served."""
        return f"{self.server.place.address}:{self.server.place.port}"

    @property
    def access(self) -> Access:
        """The lab's own way in."""
        return self.server.access(self._directory / "controller.crt", self._directory / "controller.key")

    def renew(self, certificate: Pair | None, controller: Pair | None) -> None:
        """Take over pairs that replace older ones."""
        place = self.server.place
        if certificate is not None:
            write_private(place.key, certificate.key)
            write_private(place.certificate, certificate.certificate)
        if controller is not None:
            write_private(self._directory / "controller.key", controller.key)
            write_private(self._directory / "controller.crt", controller.certificate)

    def remove(self) -> None:
        """Forget its keys and its log."""
        shutil.rmtree(self._directory)


class Cluster:
    """One cluster's etcd and API servers."""

    def __init__(self, directory: Path, address: str, programs: Kubernetes) -> None:
        self._directory = directory
        self._address = address
        self._programs = programs
        self._count = 0
        self._members: list[Member] = []
        self._etcd: Etcd | None = None
        self._changing = asyncio.Lock()
        self._furnishing = asyncio.Lock()
        self._furnished = False
        self._tending: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def member(self, hello: Hello) -> AsyncGenerator[Member]:
        """An API server that is ready, until the block ends. Raises LabError."""
        async with self._changing:
            etcd = self._begin()
            self._count += 1
            own = self._directory / f"server-{self._count}"
            member = Member(own, self._address, etcd, Path(self._programs.apiserver), hello)
            self._members.append(member)
        try:
            await self._start(member)
            yield member
        finally:
            self._members.remove(member)
            await asyncio.to_thread(member.server.process.stop)
            member.remove()
            async with self._changing:
                if not self._members:
                    await self._end()

    def check(self) -> None:
        """Raise ServiceFailed if etcd does not run any more."""
        if self._etcd is not None:
            self._etcd.process.check()

    async def close(self) -> None:
        """End etcd, when no member is left or all are cut off."""
        async with self._changing:
            await self._end()

    def _begin(self) -> Etcd:
        if self._etcd is None:
            for stale in self._directory.glob("server-*"):
                shutil.rmtree(stale)
            self._etcd = Etcd(self._directory, Path(self._programs.etcd))
            self._etcd.process.start()
        return self._etcd

    async def _end(self) -> None:
        etcd, tending = self._etcd, self._tending
        self._etcd, self._tending, self._furnished = None, None, False
        if tending is not None:
            tending.cancel()
            await asyncio.gather(tending, return_exceptions=True)
        if etcd is not None:
            await asyncio.to_thread(etcd.process.stop)

    async def _start(self, member: Member) -> None:
        """Start an API server. The first one alone: several that fill an empty etcd get in each other's way."""
        async with self._furnishing:
            first = not self._furnished
            if first:
                await self._until_ready(member)
                await asyncio.to_thread(_furnish, member.access, self._programs.definitions)
                self._furnished = True
                self._tending = asyncio.create_task(self._tend())
        if not first:
            await self._until_ready(member)

    async def _until_ready(self, member: Member) -> None:
        member.server.process.start()
        await asyncio.to_thread(member.server.wait_ready)

    async def _tend(self) -> None:
        """End namespaces that are being deleted, by any API server that runs."""
        while True:
            await asyncio.sleep(_TEND_EVERY_SECONDS)
            if self._members:
                await asyncio.to_thread(_end_namespaces, self._members[0].access)


def _furnish(access: Access, definitions: list[str]) -> None:
    with access.client() as client:
        path = f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{_BOOTSTRAPPER}"
        apply(client, path, _BOOTSTRAPPERS)
        namespaces.make(client, namespaces.METALLB)
    define(access, [each for directory in definitions for each in crds.read(Path(directory))])


def _end_namespaces(access: Access) -> None:
    try:
        with access.client() as client:
            namespaces.finish(client)
    except (httpx.HTTPError, LabError, OSError) as error:
        # The API server may be on its way out, or somebody changed what was just read: look again.
        _LOG.warning("namespaces that are being deleted: %s", error)
