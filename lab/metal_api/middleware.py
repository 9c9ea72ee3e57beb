"""Around every API request: request id, token, counting, faults, errors."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from collections import Counter
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lab.metal_api import faults, wire
from lab.metal_api.exceptions import ApiError, Unauthorized
from lab.metal_api.models import Fault
from lab.metal_api.state import Account

_log = logging.getLogger(__name__)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class RequestLog:
    """How often each route was asked, and with which statuses; ids in paths are written `{id}`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()

    def add(self, method: str, path: str, status: int) -> None:
        """Count one answered (or lost: status 0) request."""
        route = f"{method} {_UUID.sub('{id}', path)}"
        self.counts[route] += 1
        self.statuses[f"{route} {status}"] += 1


class Gate:
    """ASGI middleware of the API host. Errors that handlers raise become answers here, in the API's form."""

    def __init__(self, app: ASGIApp, account: Account, log: RequestLog) -> None:
        self._app = app
        self._account = account
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = self._account.chance.uuid()
            await send(message)

        try:
            await self._guarded(scope, receive, sending)
        except ApiError as error:  # our own refusals; those of the views are answered by the application
            await JSONResponse(error.body(), error.status)(scope, receive, sending)
        except ConnectionResetError:
            _log.info("%s %s: connection cut by a fault", method, path)
            raise
        finally:
            self._log.add(method, path, status)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = Headers(scope=scope).get("x-auth-token", "")
        if not hmac.compare_digest(token.encode(), self._account.identity.token.encode()):
            raise Unauthorized
        control = scope["path"].startswith("/lab/")
        fault = None if control else faults.on_request(self._account, scope["method"], scope["path"])
        if fault is None:
            await self._app(scope, receive, send)
        else:
            await self._faulty(fault, scope, receive, send)

    async def _faulty(self, fault: Fault, scope: Scope, receive: Receive, send: Send) -> None:
        if fault.kind == "delay":
            await self._account.clock.sleep(fault.seconds)
            await self._app(scope, receive, send)
            return
        if fault.kind == "half_body":
            await self._half(scope, receive, send)
            return
        if fault.when == "after":
            await self._carried_out(scope, receive)
        if fault.kind == "reset":
            wire.cut(scope)
            return
        body: Any = fault.body if fault.body is not None else {"errors": [f"lab fault {fault.status}"]}
        headers = {"Retry-After": "1"} if fault.status == 429 else {}
        await JSONResponse(body, fault.status, headers={**headers, **fault.headers})(scope, receive, send)

    async def _carried_out(self, scope: Scope, receive: Receive) -> tuple[Message, bytes]:
        """Do the request, keep the answer."""
        start: Message = {"type": "http.response.start", "status": 500, "headers": []}
        body = b""

        async def keep(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
            else:
                body += message.get("body", b"")

        await self._app(scope, receive, keep)
        return start, body

    async def _half(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, body = await self._carried_out(scope, receive)
        headers = MutableHeaders(raw=list(start["headers"]))
        headers["content-length"] = str(len(body))
        await send({**start, "headers": headers.raw})
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        await asyncio.sleep(0.05)  # let the half leave before the connection goes
        wire.cut(scope)
