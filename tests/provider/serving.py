"""Servers of tests, in threads on loopback."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from socketserver import TCPServer
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    """Logs nothing."""

    def log(self, type: str, message: str, *args: Any) -> None:
        return


@contextmanager
def in_thread(server: TCPServer) -> Generator[int]:
    """Its port, as long as it serves."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def application(
    app: Callable[..., Any], handler: type[WSGIRequestHandler] = Quiet, tls: ssl.SSLContext | None = None
) -> Generator[int]:
    """The port of a WSGI application."""
    with in_thread(make_server("127.0.0.1", 0, app, threaded=True, request_handler=handler, ssl_context=tls)) as port:
        yield port
