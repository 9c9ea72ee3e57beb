"""Web servers of tests, in threads on loopback."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any

import trustme
from werkzeug.serving import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    """Serves a WSGI application, and logs nothing."""

    def log(self, type: str, message: str, *args: Any) -> None:
        return


class Handler(BaseHTTPRequestHandler):
    """Answers what a test has it answer, and logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        return


class Files(SimpleHTTPRequestHandler):
    """Answers with the files of a folder, and logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        return


def tls(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    """A server's side of TLS, with a certificate for these names; for loopback's address where there are none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*(names or ("127.0.0.1",))).configure_cert(context)
    return context


@contextmanager
def in_thread(server: TCPServer, context: ssl.SSLContext | None = None) -> Generator[int]:
    """Its port, as long as it serves; over TLS where there is a context."""
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
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
    app: Callable[..., Any], handler: type[WSGIRequestHandler] = Quiet, context: ssl.SSLContext | None = None
) -> Generator[int]:
    """The port of a WSGI application."""
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=handler, ssl_context=context)
    with in_thread(server) as port:
        yield port


@contextmanager
def answering(handler: Callable[..., BaseHTTPRequestHandler], authority: trustme.CA | None = None) -> Generator[str]:
    """The URL of a server that answers so; https where there is an authority, by a certificate of it."""
    context = tls(authority) if authority else None
    with in_thread(ThreadingHTTPServer(("127.0.0.1", 0), handler), context) as port:
        yield f"http{'s' if authority else ''}://127.0.0.1:{port}"


@contextmanager
def serving(folder: Path, handler: type[Files] = Files, authority: trustme.CA | None = None) -> Generator[str]:
    """The URL of the files of a folder; https where there is an authority."""
    with answering(partial(handler, directory=str(folder)), authority) as url:
        yield url
