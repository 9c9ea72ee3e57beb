"""A cluster as the lab runs it: one etcd, an API server for each machine that asks or one for all of them, and what
every cluster has.

etcd starts with the first API server and ends with the last; its data stays until the lab is taken down. Where there is
no kube-apiserver, small API servers share a directory instead, and nothing else is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import yaml

from lab import metallb
from lab.errors import LabError
from lab.kubernetes import changes, crds, namespaces
from lab.kubernetes.access import Access, apply, define, send
from lab.kubernetes.etcd import Etcd
from lab.kubernetes.hello import Hello, NodeHello, Operated, Pair
from lab.kubernetes.operated import certificates, is_master, local_kubeconfig, of_node, tell
from lab.kubernetes.process import Process, free_port
from lab.kubernetes.programs import Programs
from lab.kubernetes.server import OFTEN, SELDOM, ApiServer, Place
from lab.kubernetes.small import OBJECTS, SmallServer
from lab.layout import write_private
from lab.olm.running import Running

_LOG = logging.getLogger(__name__)
_TEND_EVERY_SECONDS = 1.0
_INSTALLED = "installed.json"
_CONTROL_PLANE = "control-plane.json"
_POOLS = f"/apis/metallb.io/v1beta1/namespaces/{namespaces.METALLB}/ipaddresspools"
_CHASSIS_POLICY = Path(__file__).with_name("chassis_policy.yaml")
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


class Member:
    """One machine's API server, or where they are shared that of several."""

    def __init__(
        self,
        directory: Path,
        address: str,
        *,
        serve: Callable[[Place], ApiServer | SmallServer],
        hello: Hello,
        certificates: Sequence[Pair],
    ) -> None:
        """`certificates`: the first one is shown to who asks for no name, the others to who asks for theirs."""
        directory.mkdir(mode=0o700)
        self._directory = directory
        place = Place(directory=directory, address=address, port=free_port(address), named=len(certificates) - 1)
        write_private(place.clients, hello.clients)
        write_private(place.service_accounts, hello.service_account)
        own = (directory / "controller.crt", directory / "controller.key")
        targets = (own, (place.certificate, place.key), *place.named)
        for pair, (certificate, key) in zip((hello.controller, *certificates), targets, strict=True):
            write_private(key, pair.key)
            write_private(certificate, pair.certificate)
        self.server = serve(place)
        self.machines = 0
        """How many it serves."""

    @property
    def address(self) -> str:
        """The address at which it is served."""
        return f"{self.server.place.address}:{self.server.place.port}"

    @property
    def access(self) -> Access:
        """The lab's own way in, which it needs of real ones only."""
        assert isinstance(self.server, ApiServer), "small servers have nothing to be furnished with"
        return self.server.access(self._directory / "controller.crt", self._directory / "controller.key")

    def remove(self) -> None:
        """Forget its keys and its log."""
        shutil.rmtree(self._directory)


class Cluster:
    """One cluster's etcd and API servers, and for a cluster of the real installer its operators."""

    def __init__(self, directory: Path, address: str, programs: Programs | None, stand_in: str) -> None:
        """`programs`: None where there is no kube-apiserver; `stand_in`: the program lab-openshift."""
        self._directory = directory
        self._address = address
        self._programs = None if (directory / OBJECTS).exists() else programs
        self._stand_in = stand_in
        self._installed = _read(directory / _INSTALLED)
        self._operators: Process | None = None
        self._count = 0
        self._members: list[Member] = []
        self._ready: list[Member] = []
        self._etcd: Etcd | None = None
        self._changing = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._furnished = False
        self._tending: asyncio.Task[None] | None = None
        self._olm = Running(directory, address, programs.olm) if programs and programs.olm else None
        self._metallb = programs and programs.metallb
        """The manifest that is to be applied still."""

    def has(self, hello: NodeHello) -> bool:
        """Whether a node is of this cluster."""
        return self._installed is not None and of_node(hello, operated(self._installed))

    async def node_member(self, hello: NodeHello) -> contextlib.AbstractAsyncContextManager[Member]:
        """The same as `member`, for a node of the control plane. Raises LabError for any other."""
        assert self._installed is not None, "asked of clusters that have the node"
        known = self._directory / _CONTROL_PLANE
        admitted: list[str] = json.loads(known.read_text()) if known.exists() else []
        if hello.name not in admitted:
            # Once admitted, a machine is believed: after a power cut there is no API that could be asked.
            if not self._members:
                raise LabError(f"{hello.name} is not known, and no API server runs that could be asked")
            if not await asyncio.to_thread(is_master, self._members[0].access, hello.name):
                raise LabError(f"{hello.name} is not a node of the control plane yet")
            write_private(known, json.dumps([*admitted, hello.name]))
        return self.member(self._installed, certificates(operated(self._installed)))

    @property
    def local_kubeconfig(self) -> str:
        """The kubeconfig with which a control plane machine of a cluster with operators accesses its own API server."""
        assert self._installed is not None, "asked of clusters that have nodes"
        return local_kubeconfig(self._installed)

    @contextlib.asynccontextmanager
    async def member(self, hello: Hello, shown: Sequence[Pair] = ()) -> AsyncGenerator[Member]:
        """An API server that is ready, until the block ends. Raises LabError.

        `shown`: its certificates, where they are not those that the machine has.
        """
        async with self._changing:
            self._begin()
            if hello.operated is not None:
                self._installed = _keep(self._directory / _INSTALLED, hello, self._installed)
            member = self._shared() or self._new(hello, shown or (hello.certificate, *hello.named))
            member.machines += 1
        try:
            await self._start(member)
            yield member
        finally:
            member.machines -= 1
            if not member.machines:
                await self._remove(member)

    def _shared(self) -> Member | None:
        """A server that starts or runs, where machines share one."""
        if self._programs is None or not self._programs.shared:
            return None
        fit = (each for each in self._members if each not in self._ready or each.server.process.runs)
        return next(fit, None)

    def _new(self, hello: Hello, pairs: Sequence[Pair]) -> Member:
        self._count += 1
        services = (self._installed or hello).service_network
        member = Member(
            self._directory / f"server-{self._count}",
            self._address,
            serve=lambda place: self._server(place, services),
            hello=hello,
            certificates=pairs,
        )
        self._members.append(member)
        return member

    async def _remove(self, member: Member) -> None:
        self._members.remove(member)
        if member in self._ready:
            self._ready.remove(member)
            self._tell_operators()
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

    def _begin(self) -> None:
        """Prepare what the first member needs."""
        if self._count == 0:
            for stale in self._directory.glob("server-*"):
                shutil.rmtree(stale)
        if self._programs is None:
            (self._directory / OBJECTS).mkdir(parents=True, exist_ok=True, mode=0o700)
        elif self._etcd is None:
            self._etcd = Etcd(self._directory, self._programs.etcd)
            self._etcd.process.start()

    def _server(self, place: Place, services: Sequence[str]) -> ApiServer | SmallServer:
        if self._programs is None:
            return SmallServer(place, self._directory / OBJECTS, self._stand_in)
        assert self._etcd is not None, "it was begun"
        collected = OFTEN if self._programs.shared else SELDOM
        return ApiServer(place, self._etcd, self._programs.apiserver, services, collected=collected)

    async def _end(self) -> None:
        etcd, tending, operators = self._etcd, self._tending, self._operators
        self._etcd, self._tending, self._operators, self._furnished = None, None, None, False
        if operators is not None:
            await asyncio.to_thread(operators.stop)
        if tending is not None:
            tending.cancel()
            await asyncio.gather(tending, return_exceptions=True)
        if self._olm is not None:  # by now nobody starts it again
            await asyncio.to_thread(self._olm.stop)
        if etcd is not None:
            await asyncio.to_thread(etcd.process.stop)

    async def _start(self, member: Member) -> None:
        """Start an API server that is not ready yet, one at a time: OpenShift's operator goes from node to node, too
        (library-go, pkg/operator/staticpod/controller/installer, nodeToStartRevisionWith)."""
        async with self._starting:
            if member in self._ready:
                return
            if not member.server.process.runs:
                member.server.process.start()
            await asyncio.to_thread(member.server.wait_ready, joining=self._furnished)
            if self._programs is not None and not self._furnished:
                await asyncio.to_thread(
                    _furnish, member.access, self._programs.definitions, self._installed is not None
                )
                self._furnished = True
                self._tending = asyncio.create_task(self._tend())
            self._ready.append(member)
            self._tell_operators()

    def _tell_operators(self) -> None:
        """Where the API is, for the stand-in for OpenShift's operators; it is started with the first server."""
        if self._installed is None or self._etcd is None:
            return
        told = self._directory / "operators.json"
        tell(told, self._installed, self._etcd.ca, [member.address for member in self._ready])
        if self._operators is None:
            command = [self._stand_in, "operators", str(self._directory)]
            self._operators = Process("operators", command, self._directory / "operators.log")
            self._operators.start()

    async def _tend(self) -> None:
        """End namespaces that are being deleted, and have MetalLB for whom uses it, by any API server that runs."""
        while True:
            await asyncio.sleep(_TEND_EVERY_SECONDS)
            if not self._ready:
                continue
            asked = self._ready[0]
            # As long as this server is there: a client is costly to make.
            with asked.access.client() as client:
                async with asked.access.watcher() as watcher:
                    while asked in self._ready:
                        await self._tend_once(asked.access, client, watcher)
                        await asyncio.sleep(_TEND_EVERY_SECONDS)

    async def _tend_once(self, access: Access, client: httpx.Client, watcher: httpx.AsyncClient) -> None:
        """One round, and until there is something to do again; OLM's parts are looked at in each second."""
        try:
            seen = await changes.versions(watcher, (namespaces.PATH, *((_POOLS,) if self._metallb else ())))
        except httpx.HTTPError as error:
            _LOG.warning("what the lab does for a cluster: %r", error)  # it may be ending
            return
        if self._olm is not None:
            await self._olm.tend(access)
        done = await asyncio.to_thread(tend, client, self._metallb)
        if done.announces:
            self._metallb = None
        if done.rests and self._olm is None:
            await changes.wait(watcher, seen)


def _furnish(access: Access, definitions: Mapping[str, Path], installed: bool) -> None:
    """Create the objects that every cluster of the lab has; a cluster of the real installer has OpenShift's own."""
    own = [directory for name, directory in definitions.items() if not (installed and name == crds.OPENSHIFT.name)]
    with access.client() as client:
        namespaces.make(client, namespaces.METALLB)
        if installed:
            for document in yaml.safe_load_all(_CHASSIS_POLICY.read_text()):
                plural = "validatingadmissionpolic" + ("ies" if document["kind"].endswith("Policy") else "ybindings")
                path = f"/apis/admissionregistration.k8s.io/v1/{plural}/{document['metadata']['name']}"
                apply(client, path, document)
        else:
            apply(client, f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{_BOOTSTRAPPER}", _BOOTSTRAPPERS)
    define(access, [each for directory in own for each in crds.read(directory)])


def operated(hello: Hello) -> Operated:
    """The data about a cluster of the real installer."""
    assert hello.operated is not None, "only such are kept"
    return hello.operated


def _read(path: Path) -> Hello | None:
    """What a cluster's bootstrap machine said to an earlier service of this lab."""
    return Hello.of(path.read_bytes()) if path.exists() else None


def _keep(path: Path, hello: Hello, before: Hello | None) -> Hello:
    """Keep what the bootstrap machine says; a single node says less after it was installed, and the rest stays."""
    assert hello.operated is not None, "only such are kept"
    if not hello.operated.facts and before is not None:
        hello = replace(before, certificate=hello.certificate, named=hello.named)
    write_private(path, hello.text)
    return hello


@dataclass(frozen=True, kw_only=True)
class Tended:
    """How a round ended."""

    announces: bool
    """Whether MetalLB was started."""
    rests: bool
    """Whether nothing is left to be done until something changes."""


def tend(client: httpx.Client, manifest: Path | None) -> Tended:
    """One round of the loop. MetalLB starts with the first address pool."""
    try:
        rests = namespaces.finish(client)
        if manifest is None or not send(client, "GET", _POOLS, params={"limit": "1"})["items"]:
            return Tended(announces=False, rests=rests)
        for path, document in metallb.objects(manifest):
            apply(client, path, document)
    except (httpx.HTTPError, LabError, OSError) as error:
        # The API server may be ending, or the object was changed since it was read: try again.
        _LOG.warning("what the lab does for a cluster: %s", error)
        return Tended(announces=False, rests=False)
    return Tended(announces=True, rests=rests)
