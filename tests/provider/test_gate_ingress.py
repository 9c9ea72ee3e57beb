"""ingress-answers, against servers on loopback that are a router, or something else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
import trustme

from metal_ipi.provider.gates.ingress_answers import IngressAnswers, open_check
from metal_ipi.provider.resource import Context
from tests.serving import tls

_DOMAIN = "apps.lab.example.com"


async def _seen(names: tuple[str, ...] | None, answer: bytes) -> tuple[bool, str]:
    """What the gate sees of a server with a certificate for these names (None: without TLS) and this answer."""
    context = None if names is None else tls(trustme.CA(), *names)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        seen = await IngressAnswers("127.0.0.1", _DOMAIN, port).look(0)
    finally:
        server.close()
    return seen.passed, seen.text


@pytest.mark.parametrize(
    ("names", "answer", "passed", "text"),
    [
        (
            (f"*.{_DOMAIN}",),
            b"HTTP/1.0 503 Service Unavailable\r\n\r\n",
            True,
            "a router answers at 127.0.0.1: HTTP 503",
        ),
        (("*.apps.other.example.com",), b"HTTP/1.0 200 OK\r\n\r\n", False, "for *.apps.other.example.com, not"),
        ((f"*.{_DOMAIN}",), b"", False, "closed without an answer"),
        ((f"*.{_DOMAIN}",), b"SSH-2.0\r\n", False, "does not speak HTTP"),
        (None, b"", False, "127.0.0.1"),
    ],
)
async def test_what_answers_is_told_from_a_router(names: Any, answer: bytes, passed: bool, text: str) -> None:
    found = await _seen(names, answer)
    assert found[0] is passed and text in found[1]


async def test_nobody_at_all() -> None:
    seen = await IngressAnswers("127.0.0.1", _DOMAIN, 1).look(0)
    assert not seen.passed and "refuses the connection" in seen.text


def test_what_has_answered_is_not_asked_again() -> None:
    ask = cast("Callable[..., Awaitable[None] | None]", open_check)
    context, spec = cast(Context, None), {"address": "192.0.2.9", "domain": _DOMAIN}
    assert ask(context, {**spec, "nodes": ["more"]}, spec) is None
    assert ask(context, spec, None) is not None and ask(context, spec, {**spec, "address": "192.0.2.8"}) is not None
