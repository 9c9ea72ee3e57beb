"""A publisher for tests: an HTTPS server with a CA of its own, whose files can be wrong in every way."""

from __future__ import annotations

import contextlib
import hashlib
import io
import socket
import tarfile
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from binaries import publisher
from tests.serving import Handler, in_thread, tls

Answer = Callable[[BaseHTTPRequestHandler], None]


class Publisher:
    """What is served: answers by path. What was asked for is noted."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.ended = threading.Event()
        self.url = ""

    def offer(self, path: str, content: bytes) -> str:
        """Serve a file; returns its SHA-256 sum."""
        self.answers[path] = sending(content)
        return hashlib.sha256(content).hexdigest()


def sending(content: bytes, status: int = 200, **headers: str) -> Answer:
    """The whole file."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def breaking_off(content: bytes) -> Answer:
    """Half of the file, and the connection is closed."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: len(content) // 2])

    return answer


def stalling(content: bytes, ended: threading.Event) -> Answer:
    """Half of the file, and then nothing, with the connection left open."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        breaking_off(content)(handler)
        handler.wfile.flush()
        ended.wait(30)

    return answer


def archive(member: str, content: bytes) -> bytes:
    """A .tar.gz with one file in it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo(member)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@contextlib.contextmanager
def serving(authority: trustme.CA) -> Generator[Publisher]:
    """Serve over TLS on a port of loopback."""
    publisher = Publisher()

    class Answering(Handler):
        def do_GET(self) -> None:
            publisher.asked.append(self.path)
            publisher.answers.get(self.path, sending(b"", 404))(self)

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not trust us, or that gave up, is part of a test."""

    server, context = Server(("127.0.0.1", 0), Answering), tls(authority, "localhost")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with in_thread(server) as port:
        publisher.url = f"https://localhost:{port}"
        try:
            yield publisher
        finally:
            publisher.ended.set()


@contextlib.contextmanager
def silence() -> Generator[str]:
    """The URL of a host that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Publisher]:
    """A publisher that is trusted, an empty cache, and no memory of hosts. It is the mirror that the setting names."""
    authority = trustme.CA()
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(publisher.UNREACHABLE, "")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serving(authority) as served:
        monkeypatch.setenv(publisher.SETTING, served.url)
        yield served
