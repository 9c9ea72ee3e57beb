"""HTTPS of one BMC: werkzeug's server, a thread per connection, with a certificate that can be exchanged as it runs."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

_IDLE_SECONDS = 60.0


class Cut(ConnectionResetError):
    """The connection was cut on purpose."""


def cut(environ: dict[str, Any]) -> NoReturn:
    """End the connection of a request without an answer, with a reset."""
    connection: socket.socket = environ["werkzeug.socket"]
    with suppress(OSError), socket.socket() as unconnected:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # close() would wait for the files that the request handler made of it. The descriptor's number stays taken:
        # OpenSSL goes on writing to it, which must not be somebody else's connection.
        os.dup2(unconnected.fileno(), connection.fileno())
    raise Cut


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS

    def log(self, type: str, message: str, *args: Any) -> None:
        """Requests are logged where they are answered."""


class Https(ThreadedWSGIServer):
    """TLS handshakes run in the connection's thread, so a client that never completes its own does not block others."""

    daemon_threads = True

    def __init__(self, address: str, port: int, application: Any, context: Callable[[], ssl.SSLContext | None]) -> None:
        """`context` is called for each connection; None: the BMC does not answer."""
        self._context = context
        super().__init__(address, port, application, handler=_Handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def start(self) -> None:
        """Serve, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """One connection, in its thread."""
        context = self._context()
        if context is None:
            return
        request.settimeout(_IDLE_SECONDS)
        try:
            secured = context.wrap_socket(request, server_side=True)
        except OSError:  # the client does not like what it sees, or is gone
            return
        try:
            super().finish_request(secured, client_address)
        finally:
            secured.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that were cut, by the lab or by a client, are not errors."""
        import sys

        if not isinstance(sys.exc_info()[1], (OSError, ValueError)):
            super().handle_error(request, client_address)
