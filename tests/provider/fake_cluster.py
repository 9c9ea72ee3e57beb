"""A cluster's API on loopback over TLS, with client certificates; what it does not know it answers with 501."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import trustme

Json = dict[str, Any]


@dataclass
class FakeCluster:
    """Answers GETs by path: a status and a document. PUTs are kept. For all else there is `respond`."""

    ca: trustme.CA
    answers: dict[str, tuple[int, Json]] = field(default_factory=dict[str, tuple[int, Json]])
    puts: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    looks: int = 0
    respond: Callable[[str, str, Json], tuple[int, Json] | None] = lambda method, path, body: None
    """Answers what has no answer above; None for what it does not know, either."""
    url: str = ""

    def spec(self, **more: Any) -> Json:
        """What a gate is given to reach it."""
        client = self.ca.issue_cert("admin@facility.test")
        return {
            "url": self.url,
            "caPem": self.ca.cert_pem.bytes().decode(),
            "clientCertPem": client.cert_chain_pems[0].bytes().decode(),
            "clientKeyPem": client.private_key_pem.bytes().decode(),
            **more,
        }


@contextmanager
def running() -> Generator[FakeCluster, None, None]:
    """A server in a thread."""
    cluster = FakeCluster(ca=trustme.CA())

    class Handler(BaseHTTPRequestHandler):
        def _send(self, status: int, document: Json) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            cluster.looks += 1
            self._send(*(cluster.answers.get(self.path) or self._respond()))

        def do_POST(self) -> None:
            self._send(*self._respond())

        do_PATCH = do_POST

        def _respond(self) -> tuple[int, Json]:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            answer = cluster.respond(self.command, self.path, body)
            return answer or (501, {"message": f"{self.command} {self.path} is not implemented"})

        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            cluster.puts.append((self.path, body))
            self._send(200, body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            return  # clients that do not trust us hang up

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    cluster.ca.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    cluster.ca.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    # Hands are shaken in each connection's own thread: a client that is killed meanwhile must not keep others out.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    cluster.url = f"https://127.0.0.1:{server.server_address[1]}"
    try:
        yield cluster
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
