"""Retries while a DNS service does not answer, or throttles."""

from __future__ import annotations

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.dns_services import Throttled
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.resource import Context

_EXTENSIONS = 5
"""How often a throttling service may extend the timeout while nothing gets done."""


class Patience:
    """Retries transient errors until a timeout; a throttling service may extend it."""

    def __init__(self, context: Context, timeout: float) -> None:
        self._context = context
        self._timeout = timeout
        self._backoff = Backoff(timeout=timeout)
        self._extensions = _EXTENSIONS

    async def bear(self, error: RemoteError) -> None:
        """Wait before the next attempt. Raises the error if it is not transient, or if the time is up."""
        if self._backoff.over or not error.passing:
            raise error
        await self._context.status.live(f"{error}; trying again")
        asked = error.retry_after if isinstance(error, Throttled) else 0.0
        if asked > self._backoff.left and self._extensions:
            self._extensions -= 1
            self._backoff = Backoff(timeout=asked + self._timeout / 2)
        await self._backoff.pause(asked)
