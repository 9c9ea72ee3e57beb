"""Asking a cluster whether its bootstrap is complete: a TLS server on loopback that wants a client's certificate."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import trustme
import yaml

from components.install.asking import is_bootstrapped

_PATH = "/api/v1/namespaces/kube-system/configmaps/bootstrap"


class _Api(ThreadingHTTPServer):
    """Says what it is told to say."""

    status = 200
    document: Any = None
    asked: list[str]


class _Handler(BaseHTTPRequestHandler):
    server: _Api  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = json.dumps(self.server.document).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


_AUTHORITY = trustme.CA()


@pytest.fixture
def api() -> Iterator[_Api]:
    server = _Api(("127.0.0.1", 0), _Handler)
    server.asked = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
    _AUTHORITY.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


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
    assert is_bootstrapped(_assets(api.server_port)) is True
    assert api.asked == [_PATH]


@pytest.mark.parametrize(
    ("status", "document"),
    [
        (404, {"kind": "Status"}),
        (403, {"data": {"status": "complete"}}),
        (500, None),
        (200, {"data": {"status": "in progress"}}),
        (200, {"data": None}),
        (200, {}),
        (200, ["complete"]),
        (200, "complete"),
    ],
)
def test_any_other_answer_is_none(api: _Api, status: int, document: Any) -> None:
    api.status, api.document = status, document
    assert is_bootstrapped(_assets(api.server_port)) is False
    assert api.asked == [_PATH]


def test_another_cluster_at_the_address_is_not_believed(api: _Api) -> None:
    api.document = {"data": {"status": "complete"}}
    assert is_bootstrapped(_assets(api.server_port, authority=trustme.CA())) is False
    assert api.asked == []


@pytest.mark.parametrize("server", ["https://127.0.0.1:1", "https://name.invalid:6443", "https://[", "nonsense"])
def test_a_cluster_that_does_not_answer_says_nothing(server: str) -> None:
    assert is_bootstrapped(_assets(0, server=server)) is False


@pytest.mark.parametrize("assets", ["", "{}", json.dumps(dict.fromkeys(("bootstrap", "worker", "kubeconfig"), "x"))])
def test_assets_that_cannot_be_read_say_nothing(assets: str) -> None:
    assert is_bootstrapped(assets) is False


def test_a_kubeconfig_without_certificates_says_nothing() -> None:
    others = dict.fromkeys(("bootstrap", "worker", "kubeadminPassword", "metadata"), "")
    for kubeconfig in ("", "[]", "clusters: []", "clusters: [{cluster: {server: https://x}}]", "{"):
        assert is_bootstrapped(json.dumps({**others, "kubeconfig": kubeconfig})) is False
