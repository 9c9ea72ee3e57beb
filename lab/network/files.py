"""The boot file server, for machines and installers: http for firmware, https for all others."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FileResponse.chunk_size = 1 << 20  # six machines fetch 40 MB each: fewer, larger writes

_log = logging.getLogger("lab.boot")
_TREES = ("streams", "images", "containers", "artifacts")


class _Tree(StaticFiles):
    """A tree of files without listings and without what starts with a dot, such as uploads under way."""

    def get_path(self, scope: Scope) -> str:
        path = super().get_path(scope)
        if any(part.startswith(".") and part != "." for part in Path(path).parts):
            raise HTTPException(404)
        return path


class _RequestLog:
    """One line per request, with what was sent and how long it took: the first thing to read when a boot hangs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, sent = time.monotonic(), 0, 0

        async def counted(message: Message) -> None:
            nonlocal status, sent
            status = message.get("status", status)
            await send(message)
            sent += len(message.get("body", b""))

        try:
            await self._app(scope, receive, counted)
        finally:
            client = (scope.get("client") or ("-",))[0]
            seconds = time.monotonic() - started
            what = f"{scope['method']} {scope['scheme']} {scope['path']}"
            _log.info("%s %s %s %d bytes %.2f s", client, what, status, sent, seconds)


def application(root: Path) -> ASGIApp:
    """The server of the tree under `root`."""
    trees = [Mount(f"/{name}", _Tree(directory=root / name, check_dir=False)) for name in _TREES]
    return _RequestLog(Starlette(routes=trees))
