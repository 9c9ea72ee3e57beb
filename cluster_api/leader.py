"""Leader election among several processes with a Lease, as Kubernetes controllers do it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from typing import Any

from metal_ipi.cluster_api.api import LEASE, Api, ApiError, micro_time

NAME = "metal-ipi-cluster-api"
_logger = logging.getLogger(__name__)


class Leader:
    """The Lease. Times are measured by this process's own clock: a holder counts as gone if it has not renewed the
    Lease for that long."""

    def __init__(self, api: Api, namespace: str, *, seconds: float = 15.0) -> None:
        """`seconds`: how long a holder may go without renewing the Lease."""
        self._api, self._namespace, self._seconds = api, namespace, seconds
        self.identity = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns() % 10**6}"
        self._seen: tuple[str, float] = ("", 0.0)

    async def acquire(self) -> None:
        """Waits until this process has the Lease."""
        while not await self._try():  # noqa: ASYNC110 - another process ends its turn
            await asyncio.sleep(self._seconds / 5)
        _logger.info("leads as %s", self.identity)

    async def hold(self) -> None:
        """Renew the Lease; returns when it is lost. All work must end then."""
        renewed = time.monotonic()
        while (left := renewed + self._seconds * 2 / 3 - time.monotonic()) > 0:
            await asyncio.sleep(min(self._seconds / 5, left))
            asked = time.monotonic()
            with contextlib.suppress(TimeoutError):  # an answer that comes too late is none
                if await asyncio.wait_for(self._try(), max(renewed + self._seconds * 2 / 3 - asked, 0)):
                    renewed = asked
        _logger.error("the Lease %s/%s was lost", self._namespace, NAME)

    async def release(self) -> None:
        """Releases the Lease, so that another process can start at once."""
        found = await self._api.get(LEASE, self._namespace, NAME)
        if found is not None and found["spec"].get("holderIdentity") == self.identity:
            await self._api.delete(LEASE, self._namespace, NAME)

    async def _try(self) -> bool:
        try:
            found = await self._api.get(LEASE, self._namespace, NAME)
            if found is None:
                body = {"metadata": {"name": NAME}, "spec": self._spec()}
                return await self._api.create(LEASE, self._namespace, body) is not None
            holder, version = found["spec"].get("holderIdentity"), found["metadata"]["resourceVersion"]
            if holder != self.identity:
                if self._seen[0] != version:
                    self._seen = (version, time.monotonic())
                if time.monotonic() - self._seen[1] < self._seconds:
                    return False
            return await self._api.replace(LEASE, self._namespace, {**found, "spec": self._spec()}) is not None
        except ApiError as error:
            _logger.warning("the Lease cannot be written: %s", error)
            return False

    def _spec(self) -> dict[str, Any]:
        seconds = round(self._seconds)
        return {"holderIdentity": self.identity, "leaseDurationSeconds": seconds, "renewTime": micro_time()}
