"""moto's server on loopback, with faults before it: answers that AWS gives and moto does not."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from tests import serving

_ERROR = (
    '<?xml version="1.0"?><ErrorResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><Error><Type>Sender'
    "</Type><Code>{code}</Code><Message>{message}</Message></Error><RequestId>1</RequestId></ErrorResponse>"
)


@dataclass
class Faults:
    """A WSGI application before another; notes what is asked, and answers what it is told to instead."""

    app: Callable[..., Iterable[bytes]]
    asked: list[str] = field(default_factory=list[str])
    """`<method> <path>` of each request."""
    waiting: list[tuple[str, int, str, dict[str, str]]] = field(default_factory=list[Any])
    """(method, status, code, headers) of the answers to give once each, in order."""
    before: Callable[[str, bytes], str | None] | None = None
    """Called with a request's method and body before it is passed on; may refuse it with an error code."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method = str(environ["REQUEST_METHOD"])
        with self.lock:
            self.asked.append(f"{method} {environ['PATH_INFO']}")
            told = next((each for each in self.waiting if each[0] == method), None)
            if told is not None:
                self.waiting.remove(told)
        if told is None:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = io.BytesIO(body)
            refused = self.before(method, body) if self.before is not None else None
            if refused is None:
                return self.app(environ, start_response)
            told = (method, 400, refused, {})
        _, status, code, headers = told
        body = _ERROR.format(code=code, message=f"injected {code}").encode()
        kind = [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))]
        start_response(f"{status} Injected", [*kind, *headers.items()])
        return [body]


@contextmanager
def running() -> Generator[tuple[str, Faults], None, None]:
    """The server's URL, and its faults."""
    faults = Faults(DomainDispatcherApplication(create_backend_app))
    with serving.application(faults) as port:
        yield f"http://127.0.0.1:{port}", faults
