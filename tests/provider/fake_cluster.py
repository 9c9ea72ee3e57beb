"""A cluster's API on loopback over TLS, with client certificates; what it does not know it answers with 501."""

from __future__ import annotations

import base64
import hashlib
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
    execute: Callable[[str], tuple[int, str, str] | None] = lambda path: None
    """Runs a command in a pod, given the path with its query: code, output and errors; None where that is refused."""
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
            if self.headers.get("Upgrade") == "websocket":
                self._execute()
            else:
                self._send(*(cluster.answers.get(self.path) or self._respond()))

        def _execute(self) -> None:
            self.protocol_version = "HTTP/1.1"
            done = cluster.execute(self.path)
            if done is None:
                self._send(500, {"message": "error dialing backend"})
            else:
                self._tell(*done)

        def _tell(self, code: int, output: str, errors: str) -> None:
            """As v4.channel.k8s.io has it: a channel's number before each message, and at last how it ended."""
            status: Json = {"status": "Success"}
            if code:
                causes = [{"reason": "ExitCode", "message": str(code)}]
                status = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
            wanted = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            for name, value in (
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade"),
                ("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(wanted.encode()).digest()).decode()),
                ("Sec-WebSocket-Protocol", self.headers["Sec-WebSocket-Protocol"]),
            ):
                self.send_header(name, value)
            self.end_headers()
            for channel, text in ((1, output), (2, errors), (3, json.dumps(status))):
                data = bytes([channel]) + text.encode()
                self.wfile.write(b"\x82\x7e" + len(data).to_bytes(2, "big") + data)
            self.wfile.write(b"\x88\x02\x03\xe8")
            self.wfile.flush()
            self.rfile.read(8)  # the other side's end
            self.close_connection = True

        def do_POST(self) -> None:
            self._send(*self._respond())

        do_PATCH = do_DELETE = do_POST

        def _respond(self) -> tuple[int, Json]:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            answer = cluster.respond(self.command, self.path, body)
            return answer or (501, {"message": f"{self.command} {self.path} is not implemented"})

        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            cluster.puts.append((self.path, body))
            self._send(*(cluster.respond(self.command, self.path, body) or (200, body)))

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
