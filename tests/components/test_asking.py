"""Asking a cluster whether its bootstrap is complete: a TLS server on loopback that wants a client's certificate, and
an SSH server there."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any

import asyncssh
import pytest
import trustme
import yaml

from metal_ipi.components.install.asking import Answer, Login, ask
from tests import serving

pytestmark = pytest.mark.servers

_PATH = "/api/v1/namespaces/kube-system/configmaps/bootstrap"


class _Api(ThreadingHTTPServer):
    """Says what it is told to say."""

    status = 200
    document: Any = None
    asked: list[str]


class _Handler(serving.Handler):
    server: _Api  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = json.dumps(self.server.document).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


_AUTHORITY = trustme.CA()


@pytest.fixture
def api() -> Iterator[_Api]:
    server = _Api(("127.0.0.1", 0), _Handler)
    server.asked = []
    context = serving.tls(_AUTHORITY)
    _AUTHORITY.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with serving.in_thread(server, context):
        yield server


def _assets(port: int, *, authority: trustme.CA = _AUTHORITY, server: str | None = None) -> str:
    def encoded(pem: bytes) -> str:
        return base64.b64encode(pem).decode()

    client = _AUTHORITY.issue_cert("admin@lab")
    cluster = {
        "server": server or f"https://127.0.0.1:{port}/",
        "certificate-authority-data": encoded(authority.cert_pem.bytes()),
    }
    user = {
        "client-certificate-data": encoded(client.cert_chain_pems[0].bytes()),
        "client-key-data": encoded(client.private_key_pem.bytes()),
    }
    kubeconfig = yaml.safe_dump({"clusters": [{"cluster": cluster}], "users": [{"user": user}]})
    others = dict.fromkeys(("bootstrap", "worker", "kubeadminPassword", "metadata"), "")
    return json.dumps({**others, "kubeconfig": kubeconfig})


def test_a_cluster_that_says_complete_is_believed(api: _Api) -> None:
    api.document = {"data": {"status": "complete"}}
    assert ask(_assets(api.server_port), None).formed is True
    assert api.asked == [_PATH]


@pytest.mark.parametrize("answer", [(404, {"kind": "Status"}), (200, {"data": {"status": "in progress"}})])
@pytest.mark.parametrize(("says", "formed"), [("done", True), ("busy", False)])
def test_what_is_not_said_to_be_complete_the_bootstrap_machine_tells(
    api: _Api, answer: tuple[int, Any], says: str, formed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control plane runs for a while before the cluster is told so."""
    api.status, api.document = answer
    with _Machine(says) as port:
        monkeypatch.setattr("metal_ipi.components.install.asking._PORT", port)
        assert ask(_assets(api.server_port), _login()).formed is formed
    alone = ask(_assets(api.server_port), None)
    assert alone.formed is None and alone.text.endswith("does not say that bootstrap is complete")
    assert api.asked == [_PATH, _PATH]


@pytest.mark.parametrize(
    ("status", "document"),
    [
        (401, {"kind": "Status"}),
        (403, {"data": {"status": "complete"}}),
        (500, None),
        (200, {"data": None}),
        (200, {}),
        (200, ["complete"]),
        (200, "complete"),
    ],
)
def test_an_answer_that_means_nothing_is_none(api: _Api, status: int, document: Any) -> None:
    api.status, api.document = status, document
    assert ask(_assets(api.server_port), None).formed is None
    assert api.asked == [_PATH]


def test_another_cluster_at_the_address_is_not_believed(api: _Api) -> None:
    api.document = {"data": {"status": "complete"}}
    answer = ask(_assets(api.server_port, authority=trustme.CA()), None)
    assert answer.formed is None and "certificate verify failed" in answer.text
    assert api.asked == []


@pytest.mark.parametrize("server", ["https://127.0.0.1:1", "https://name.invalid:6443", "https://[", "nonsense"])
def test_a_cluster_that_does_not_answer_says_nothing(server: str) -> None:
    answer = ask(_assets(0, server=server), None)
    assert answer.formed is None and answer.text.startswith(f"{server} does not answer (")


@pytest.mark.parametrize("assets", ["", "{}", json.dumps(dict.fromkeys(("bootstrap", "worker", "kubeconfig"), "x"))])
def test_assets_that_cannot_be_read_say_nothing(assets: str) -> None:
    assert ask(assets, None) == Answer(formed=None, text=_NO_KUBECONFIG)


def test_a_kubeconfig_without_certificates_says_nothing() -> None:
    others = dict.fromkeys(("bootstrap", "worker", "kubeadminPassword", "metadata"), "")
    for kubeconfig in ("", "[]", "clusters: []", "clusters: [{cluster: {server: https://x}}]", "{"):
        assert ask(json.dumps({**others, "kubeconfig": kubeconfig}), None).text == _NO_KUBECONFIG


_NO_KUBECONFIG = "the assets contain no kubeconfig for the cluster's API"
_HOST, _USER = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))


def _public(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode()


def _login(address: str = "127.0.0.1", host: asyncssh.SSHKey = _HOST) -> Login:
    return Login(address=address, host_key=_public(host), private_key=_USER.export_private_key().decode())


class _Machine:
    """An SSH server on loopback, in a thread of its own, which answers every command with what it is told."""

    def __init__(self, says: str) -> None:
        self.commands: list[str] = []
        self._says = says
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    async def _listen(self) -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[_HOST],
            authorized_client_keys=asyncssh.import_authorized_keys(_public(_USER)),
            process_factory=self._serve,
        )

    def _serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        self.commands.append(str(process.command))
        process.stdout.write(f"{self._says}\n")
        process.exit(0)

    def __enter__(self) -> int:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(20)
        return self._server.get_port()

    def __exit__(self, *_: object) -> None:
        async def end() -> None:
            self._server.close()
            await self._server.wait_closed()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.mark.parametrize(("says", "formed"), [("done", True), ("busy", False), ("Locked by the administrator", None)])
def test_where_the_api_is_silent_the_bootstrap_machine_is_asked(
    says: str, formed: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _Machine(says)
    with machine as port:
        monkeypatch.setattr("metal_ipi.components.install.asking._PORT", port)
        answer = ask(_assets(0, server="https://127.0.0.1:1"), _login())
    assert answer.formed is formed, answer.text
    (command,) = machine.commands
    assert "/opt/openshift/cb-bootstrap.done" in command


def test_it_is_asked_from_within_an_event_loop() -> None:
    async def program() -> Answer:
        return ask(_assets(0, server="https://127.0.0.1:1"), _login("127.0.0.2"))

    answer = asyncio.run(program())
    assert answer.formed is None
    assert "https://127.0.0.1:1 does not answer" in answer.text and "does not answer over SSH" in answer.text


def test_another_machine_at_the_address_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine("busy")
    with machine as port:
        monkeypatch.setattr("metal_ipi.components.install.asking._PORT", port)
        other = asyncssh.generate_private_key("ssh-ed25519")
        answer = ask(_assets(0, server="https://127.0.0.1:1"), _login(host=other))
    assert answer.formed is None and machine.commands == []
