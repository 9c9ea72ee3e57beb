"""A cluster's API on loopback over TLS, with client certificates; what it does not know it answers with 501."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import trustme

Json = dict[str, Any]
_CA = trustme.CA()
_SERVER, _CLIENT = _CA.issue_cert("127.0.0.1", "localhost"), _CA.issue_cert("admin@facility.test")


@dataclass
class FakeCluster:
    """Answers GETs by path: a status and a document. PUTs are kept. For all else there is `respond`."""

    answers: dict[str, tuple[int, Json]] = field(default_factory=dict[str, tuple[int, Json]])
    puts: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    looks: int = 0
    respond: Callable[[str, str, Json], tuple[int, Json] | None] = lambda method, path, body: None
    """Answers what has no answer above; None for what it does not know, either."""
    execute: Callable[[str], tuple[int, str, str] | None] = lambda path: None
    """Runs a command in a pod, given the path with its query: code, output and errors; None where that is refused."""
    url: str = ""
    keeps: bool = False
    """Whether a connection is for more than one request."""
    connections: int = 0
    serving: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    """Connections that are open."""

    @cached_property
    def ca_pem(self) -> str:
        return _CA.cert_pem.bytes().decode()

    def spec(self, **more: Any) -> Json:
        """What a gate is given to reach it."""
        certificate, key = _CLIENT.cert_chain_pems[0], _CLIENT.private_key_pem
        pems = {"clientCertPem": certificate.bytes().decode(), "clientKeyPem": key.bytes().decode()}
        return {"url": self.url, "caPem": self.ca_pem, **pems, **more}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        task = asyncio.ensure_future(self._serve(reader, writer))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)
        try:
            await task
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Its requests."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):  # clients that do not trust us, or are killed
            while await self._serve_one(reader, writer):
                pass

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; returns whether another one may follow."""
        head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head.split()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        content = await reader.readexactly(int(headers.get("content-length") or 0))
        if headers.get("upgrade") == "websocket" and (done := self.execute(path)) is not None:
            writer.write(_told(headers, *done))
            await reader.readexactly(8)  # the other side's end
        else:
            status, document = self._answer(method, path, json.loads(content or b"{}"), headers)
            body = json.dumps(document).encode()
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        return self.keeps

    def _answer(self, method: str, path: str, body: Json, headers: Mapping[str, str]) -> tuple[int, Json]:
        if headers.get("upgrade") == "websocket":
            return 500, {"message": "error dialing backend"}
        if method == "GET":
            self.looks += 1
            if path in self.answers:
                return self.answers[path]
        if method == "PUT":
            self.puts.append((path, body))
        unknown = (200, body) if method == "PUT" else (501, {"message": f"{method} {path} is not implemented"})
        return self.respond(method, path, body) or unknown


def _told(headers: Mapping[str, str], code: int, output: str, errors: str) -> bytes:
    """As v4.channel.k8s.io has it: a channel's number before each message, and at last how it ended."""
    status: Json = {"status": "Success"}
    if code:
        causes = [{"reason": "ExitCode", "message": str(code)}]
        status = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
    wanted = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    told = (
        "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {base64.b64encode(hashlib.sha1(wanted.encode()).digest()).decode()}\r\n"
        f"Sec-WebSocket-Protocol: {headers['sec-websocket-protocol']}\r\n\r\n"
    ).encode()
    for channel, text in ((1, output), (2, errors), (3, json.dumps(status))):
        data = bytes([channel]) + text.encode()
        told += b"\x82\x7e" + len(data).to_bytes(2, "big") + data
    return told + b"\x88\x02\x03\xe8"


@asynccontextmanager
async def running() -> AsyncGenerator[FakeCluster]:
    """A server in the loop that runs."""
    cluster, context = FakeCluster(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _SERVER.configure_cert(context)
    _CA.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    server = await asyncio.start_server(cluster.serve, "127.0.0.1", 0, ssl=context)
    cluster.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield cluster
    finally:
        server.close()
        for task in cluster.serving:
            task.cancel()
        await asyncio.gather(*cluster.serving, return_exceptions=True)
