"""The service that runs machines' API servers: who gets one, with whom it is shared, and until when."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lab import facts
from lab.kubernetes import __main__ as service
from lab.kubernetes import crds
from lab.kubernetes.access import Access, send
from lab.kubernetes.etcd import Etcd
from lab.kubernetes.server import ApiServer
from lab.layout import Layout
from tests.lab.kubernetes.support import Identities, ready_to_run
from tests.lab.openshift import kinds
from tests.lab.waiting import until

pytestmark = pytest.mark.programs

ADDRESS = "127.0.0.1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True)
class Cluster:
    """What its machines have in common."""

    identities: Identities
    tokens: str

    @classmethod
    def new(cls, directory: Path) -> Cluster:
        directory.mkdir()
        key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        return cls(Identities(directory), key.decode())

    def hello(self) -> dict[str, Any]:
        def pair(name: str, group: str | None = None) -> dict[str, str]:
            certificate, key = self.identities.issue(name, group)
            return {"certificate": certificate.read_text(), "key": key.read_text()}

        return {
            "clients": self.identities.ca.read_text(),
            "serviceAccount": self.tokens,
            "controller": pair("controller", "system:masters"),
            "certificate": pair("api.test"),
            "serviceNetwork": ["172.20.0.0/16", "fd02::/112"],
        }

    def access(self, address: str) -> Access:
        """A user's way in."""
        certificate, key = self.identities.issue("user", "system:masters")
        ca = self.identities.ca
        return Access(url=f"https://{address}", ca=ca, certificate=certificate, key=key, name="api.test")


class Machine:
    """A connection to the service."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._pulse: asyncio.Task[None] | None = None

    async def ask(self, line: bytes) -> dict[str, str]:
        self.writer.write(line + b"\n")
        return json.loads(await asyncio.wait_for(self._reader.readline(), 90))

    async def begin(self, cluster: Cluster) -> str:
        """The address of the API server that the service says is ready."""
        answer = await self.ask(json.dumps(cluster.hello()).encode())
        assert set(answer) == {"address"}, answer
        self._pulse = asyncio.create_task(self._live())
        return answer["address"]

    async def _live(self) -> None:
        while True:
            self.writer.write(b"{}\n")
            await asyncio.sleep(0.3)

    def fall_silent(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()

    def close(self) -> None:
        self.fall_silent()
        self.writer.close()


Connect = Callable[[], Awaitable[Machine]]


@contextlib.asynccontextmanager
async def running(tmp_path: Path, *, shared: bool = False) -> AsyncGenerator[Connect]:
    ready_to_run()
    layout = Layout.of(tmp_path / "lab")
    layout.make()
    known = facts.ensure(layout, "simulated", kinds.of(Path("/none")), shared_api_servers=shared).kubernetes
    assert known is not None
    name = crds.METALLB.name
    few = replace(known, definitions={name: known.definitions[name]})
    served = service.Service(layout, ADDRESS, few, stand_in="/nonexistent")
    server = await asyncio.start_server(served.connected, ADDRESS, 0, limit=1 << 20)
    port = server.sockets[0].getsockname()[1]
    machines: list[Machine] = []

    async def connect() -> Machine:
        machines.append(Machine(*await asyncio.open_connection(ADDRESS, port)))
        return machines[-1]

    try:
        yield connect
    finally:
        for machine in machines:
            machine.close()
        server.close()
        await served.close()


async def refuses_connections(address: str, seconds: float = 20) -> None:
    """Wait until nobody listens any more."""
    host, _, port = address.rpartition(":")
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            _, writer = await asyncio.open_connection(host, int(port))
            writer.close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            pass  # closed while we came
        assert asyncio.get_running_loop().time() < deadline, f"{address} still listens"
        await asyncio.sleep(0.2)


async def test_machines_of_a_cluster_share_its_objects_and_others_do_not(tmp_path: Path) -> None:
    ours, theirs = Cluster.new(tmp_path / "ours"), Cluster.new(tmp_path / "theirs")
    async with running(tmp_path) as connect:
        bootstrap, other, stranger = await connect(), await connect(), await connect()
        first, second, strange = await asyncio.gather(bootstrap.begin(ours), other.begin(ours), stranger.begin(theirs))
        with ours.access(first).client() as client:
            send(client, "POST", CONFIG_MAPS, json={"metadata": {"name": "kept"}})
        bootstrap.close()
        await refuses_connections(first)
        with ours.access(second).client() as client:
            send(client, "GET", f"{CONFIG_MAPS}/kept")
            kinds = {each["kind"] for each in send(client, "GET", "/apis/metallb.io/v1beta1")["resources"]}
            assert "IPAddressPool" in kinds
        with theirs.access(strange).client() as client:
            assert client.get(f"{CONFIG_MAPS}/kept").status_code == 404
        # With its last machine a cluster rests; its objects do not go.
        other.close()
        await refuses_connections(second)
        again = await (await connect()).begin(ours)
        with ours.access(again).client() as client:
            send(client, "GET", f"{CONFIG_MAPS}/kept")


async def test_namespaces_end_and_nothing_is_asked_while_nothing_changes(tmp_path: Path) -> None:
    cluster = Cluster.new(tmp_path / "cluster")

    def asked(client: httpx.Client) -> list[str]:
        lines = client.get("/metrics").raise_for_status().text.splitlines()
        return [each for each in lines if each.startswith("apiserver_request_total{") and 'verb="LIST"' in each]

    async with running(tmp_path) as connect:
        with cluster.access(await (await connect()).begin(cluster)).client() as client:
            for name in ("first", "second"):  # the second time it waits for changes already
                path = f"/api/v1/namespaces/{name}"
                send(client, "POST", "/api/v1/namespaces", json={"metadata": {"name": name}})
                send(client, "POST", f"{path}/configmaps", json={"metadata": {"name": "kept"}})
                send(client, "DELETE", path)
                await asyncio.to_thread(until, lambda path=path: client.get(path).status_code == 404, 20)
                await asyncio.sleep(3)
            before = asked(client)
            await asyncio.sleep(4)
            assert asked(client) == before and any('resource="namespaces"' in each for each in before)


async def test_machines_of_a_cluster_may_share_an_api_server_until_the_last_one_goes(tmp_path: Path) -> None:
    ours, theirs = Cluster.new(tmp_path / "ours"), Cluster.new(tmp_path / "theirs")
    async with running(tmp_path, shared=True) as connect:
        bootstrap, other, stranger = await connect(), await connect(), await connect()
        first, second, strange = await asyncio.gather(bootstrap.begin(ours), other.begin(ours), stranger.begin(theirs))
        assert first == second != strange
        bootstrap.close()
        assert await (await connect()).begin(ours) == second
        with ours.access(second).client() as client:
            send(client, "POST", CONFIG_MAPS, json={"metadata": {"name": "kept"}})
        stranger.close()
        await refuses_connections(strange)


async def test_a_shared_api_server_that_ended_is_shared_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    ready = ApiServer.wait_ready

    def wait_ready(server: ApiServer, *, joining: bool = False) -> None:
        ready(server, joining=joining)
        assert server.process.pid is not None
        started.append(server.process.pid)

    monkeypatch.setattr(ApiServer, "wait_ready", wait_ready)
    cluster = Cluster.new(tmp_path / "cluster")
    async with running(tmp_path, shared=True) as connect:
        # One that says nothing is not told that its server ended, and keeps it for some seconds.
        silent = await connect()
        first = await silent.begin(cluster)
        silent.fall_silent()
        os.kill(started[0], signal.SIGKILL)
        await refuses_connections(first)
        second = await (await connect()).begin(cluster)
        with cluster.access(second).client() as client:
            send(client, "GET", CONFIG_MAPS)


async def test_services_have_addresses_of_the_clusters_own_networks(tmp_path: Path) -> None:
    cluster = Cluster.new(tmp_path / "cluster")
    spec = {"ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}]}
    async with running(tmp_path) as connect:
        with cluster.access(await (await connect()).begin(cluster)).client() as client:
            path = "/api/v1/namespaces/default/services"
            made = send(client, "POST", path, json={"metadata": {"name": "web"}, "spec": spec})["spec"]
    first, second = (ipaddress.ip_address(each) for each in made["clusterIPs"])
    assert first in ipaddress.ip_network("172.20.0.0/16") and second in ipaddress.ip_network("fd02::/112"), made


async def test_a_machine_that_says_nothing_any_more_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_SILENCE_SECONDS", 1.0)
    async with running(tmp_path) as connect:
        machine = await connect()
        address = await machine.begin(Cluster.new(tmp_path / "cluster"))
        machine.fall_silent()
        await refuses_connections(address)


async def test_without_its_etcd_no_api_server_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Etcd] = []
    monkeypatch.setattr("lab.kubernetes.cluster.Etcd", lambda *of: started.append(Etcd(*of)) or started[-1])
    async with running(tmp_path) as connect:
        address = await (await connect()).begin(Cluster.new(tmp_path / "cluster"))
        started[0].process.stop()
        await refuses_connections(address)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"serviceAccount": ""}, "serviceAccount is not a private key"),
        ({"serviceAccount": "../../etc"}, "serviceAccount is not a private key"),
        ({"certificate": {"certificate": "a"}}, "a certificate comes with key"),
        ({"serviceNetwork": []}, "serviceNetwork is missing"),
        ({"serviceNetwork": ["172.20.0.1/16"]}, "serviceNetwork: 172.20.0.1/16 has host bits set"),
        ({"controller": None}, "a certificate comes with certificate and key"),
        ({"certificate": {"certificate": "a", "key": "b"}}, "kube-apiserver ended with status 1"),
    ],
)
async def test_who_cannot_say_what_it_needs_is_told_so(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    async with running(tmp_path) as connect:
        hello = {**Cluster.new(tmp_path / "cluster").hello(), **change}
        assert complaint in (await (await connect()).ask(json.dumps(hello).encode()))["error"]
        assert "JSON objects" in (await (await connect()).ask(b"[]"))["error"]
