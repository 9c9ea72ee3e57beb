"""Messages to the engine: live status next to a resource, and lasting remarks below it.

All secrets that the provider has seen are removed from these messages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from metal_ipi.provider import backoff

_MINIMUM_SECRET_LENGTH = 8
_BLOT = "[secret]"


Say = Callable[[str], Awaitable[None]]
"""A function that shows a remark to the user."""


async def silent(text: str) -> None:
    """Discards a remark."""


class Redactor:
    """Replaces secret texts in messages. Secrets of less than eight characters are not replaced, because ordinary words
    would match them."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()

    def learn(self, texts: Iterable[str]) -> None:
        """Adds secrets, also line by line: programs quote single lines of a key."""
        for text in texts:
            for part in (text, *text.splitlines()):
                if len(part.strip()) >= _MINIMUM_SECRET_LENGTH and "-----" not in part:
                    self._secrets.add(part.strip())

    def __call__(self, message: str) -> str:
        for secret in sorted((s for s in self._secrets if s in message), key=len, reverse=True):
            message = message.replace(secret, _BLOT)
        return message


class Log(Protocol):
    """A receiver of messages for the engine."""

    async def send(
        self, message: str, *, urn: str, ephemeral: bool, debug: bool = False, warning: bool = False
    ) -> None:
        """Sends one message. Never raises if that fails."""
        ...


class EngineLog:
    """The engine's log service. Errors are ignored: a lost message must not fail an operation."""

    def __init__(self, address: str, redact: Redactor) -> None:
        self._address = address
        self._redact = redact
        self._stub: Any = None

    async def send(
        self, message: str, *, urn: str, ephemeral: bool, debug: bool = False, warning: bool = False
    ) -> None:
        import grpc.aio
        from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

        if self._stub is None:
            self._stub = engine_pb2_grpc.EngineStub(grpc.aio.insecure_channel(self._address))
        request = engine_pb2.LogRequest(
            severity=engine_pb2.DEBUG if debug else engine_pb2.WARNING if warning else engine_pb2.INFO,
            message=self._redact(message),
            urn=urn,
            ephemeral=ephemeral,
        )
        try:
            await self._stub.Log(request, timeout=5)
        except grpc.aio.AioRpcError:
            return


class NoLog:
    """For an engine that gave no address: discards all messages."""

    async def send(
        self, message: str, *, urn: str, ephemeral: bool, debug: bool = False, warning: bool = False
    ) -> None:
        return


class Status:
    """The messages of one operation on one resource. Live status is sent at most once a second."""

    def __init__(self, log: Log, urn: str) -> None:
        self._log = log
        self._urn = urn
        self._last = float("-inf")

    async def live(self, message: str) -> None:
        """Shows what is going on; the engine displays the latest message next to the resource."""
        if backoff.clock.now() - self._last >= 1:
            self._last = backoff.clock.now()
            await self._log.send(message, urn=self._urn, ephemeral=True)

    async def remark(self, message: str) -> None:
        """Shows a lasting remark below the resource at the end."""
        await self._log.send(message, urn=self._urn, ephemeral=False)

    async def warn(self, message: str) -> None:
        """Shows a remark that needs somebody's action."""
        await self._log.send(message, urn=self._urn, ephemeral=False, warning=True)
