"""Around every API request: request id, token, counting, faults, errors."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lab.metal_api import faults, wire
from lab.metal_api.access import admit
from lab.metal_api.exceptions import ApiError
from lab.metal_api.faults import Fault
from lab.metal_api.request_log import RequestLog
from lab.metal_api.state import Account

_log = logging.getLogger(__name__)


def refusal(error: ApiError) -> Response:
    """An error in the API's form."""
    return JSONResponse(error.body(), error.status)


class Gate:
    """ASGI middleware of the API host. Errors that handlers raise become answers here, in the API's form."""

    def __init__(self, app: ASGIApp, account: Account, log: RequestLog) -> None:
        self._app = app
        self._account = account
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        status, started, told = 0, time.perf_counter(), False

        def tell() -> None:
            nonlocal told
            if not told:
                told = True
                self._log.add(method, path, status, time.perf_counter() - started)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = self._account.chance.uuid()
            elif not message.get("more_body"):
                tell()  # whoever has an answer finds it counted
            await send(message)

        try:
            await self._guarded(scope, receive, sending)
        except ApiError as error:  # our own refusals; those of the operations are answered by the application
            await refusal(error)(scope, receive, sending)
        except ConnectionResetError:
            _log.info("%s %s: connection cut by a fault", method, path)
            raise
        finally:
            tell()

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = Headers(scope=scope).get("x-auth-token", "")
        admit(self._account, token)
        if scope["path"].startswith("/lab/"):
            await self._app(scope, receive, send)
            return
        fault = None
        if self._account.table(faults.Fault):
            body, receive = await _read(receive)
            call = faults.Call(method=scope["method"], path=scope["path"], query=scope["query_string"], body=body)
            fault = faults.on_request(self._account, call)
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
        if fault.kind == "hang":
            await self._account.clock.sleep(fault.seconds)
        if fault.kind in ("reset", "hang"):
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


async def _read(receive: Receive) -> tuple[bytes, Receive]:
    """A request's whole body, and what tells it again to the application."""
    request = Request({"type": "http"}, receive)
    body = await request.body()
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return body, again
