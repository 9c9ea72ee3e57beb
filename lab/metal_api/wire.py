"""uvicorn on the lab's terms: TLS sockets of our own, no signal handling, connections that can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

_connections: dict[tuple[str, int], asyncio.Transport] = {}


class CuttableProtocol(H11Protocol):
    """Remembers its transport by the client's address, so that a fault can cut the connection."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        if peer is not None:
            _connections[(peer[0], peer[1])] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self.client is not None:
            _connections.pop(self.client, None)
        super().connection_lost(exc)


def cut(scope: Scope) -> None:
    """Reset the connection a request came on. Servers other than ours (test clients) have none: an error there."""
    client = scope.get("client")
    transport = _connections.get(tuple(client)) if client else None
    if transport is None:
        raise ConnectionResetError("connection cut by a fault")
    transport.abort()


class Server(uvicorn.Server):
    """Lives in somebody else's event loop, which also owns the signals."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listening.set()

    async def begin(self, sock: socket.socket) -> asyncio.Task[None]:
        """Serve a socket; returns once it does, with the task that ends when the server does."""
        serving = asyncio.create_task(self.serve(sockets=[sock]), name=f"http {sock.getsockname()}")
        listening = asyncio.create_task(self._listening.wait())
        await asyncio.wait({serving, listening}, return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()
        if serving.done():
            serving.result()
            raise RuntimeError("the server ended before it listened")
        return serving


def listen(address: str, port: int) -> socket.socket:
    """A listening socket; bound before anything starts, so that a taken port is an error at once."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    sock.listen(1024)
    sock.setblocking(False)
    return sock


def server(app: ASGIApp, *, certificate: tuple[Path, Path] | None) -> Server:
    """A server for an app; `certificate` are certificate chain and key for TLS."""
    config = uvicorn.Config(
        app,
        http=CuttableProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=1,
        ssl_certfile=str(certificate[0]) if certificate else None,
        ssl_keyfile=str(certificate[1]) if certificate else None,
    )
    return Server(config)
