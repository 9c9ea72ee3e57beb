"""Answers of the management cluster's API that are kept for a moment: all objects of a cluster ask for the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from metal_ipi.cluster_api.api import Api, Object, Resource

_LONGEST = 5.0
"""Seconds for which an answer is kept. Nobody tells of changes of kinds that are not watched, such as Secrets."""


@dataclass(frozen=True, kw_only=True)
class _Kept:
    until: float
    """On the monotonic clock."""
    answer: asyncio.Future[Any]


class Reads:
    """Asks an `Api`, and keeps each answer for 5 s, or until `forget` is called for one of its objects: by a watch, and
    by whatever this `Api` writes. An answer is shared, and must not be changed.

    Not for what decides about deletions and claims: that is asked of the `Api` itself.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        api.wrote = self.forget
        self._kept: dict[tuple[str, str], dict[str, _Kept]] = {}
        """By kind and namespace; each by the name of its object, or by the labels of a list behind a question mark."""

    async def get(self, kind: Resource, namespace: str, name: str) -> Object | None:
        """As `Api.get`."""
        return await self._read(kind, namespace, name, partial(self._api.get, kind, namespace, name))

    async def list(self, kind: Resource, namespace: str, labels: str = "") -> list[Object]:
        """As `Api.list`."""
        return await self._read(kind, namespace, f"?{labels}", partial(self._api.list, kind, namespace, labels))

    def forget(self, kind: str, namespace: str, name: str) -> None:
        """An object has changed: the next question about it, or about all of its kind, is asked anew."""
        kept = self._kept.get((kind, namespace), {})
        for question in [each for each in kept if each == name or each.startswith("?")]:
            del kept[question]

    async def _read(
        self, kind: Resource, namespace: str, question: str, ask: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:
        kept, now = self._kept.setdefault((kind.kind, namespace), {}), time.monotonic()
        for each in [each for each, old in kept.items() if old.until <= now or _failed(old.answer)]:
            del kept[each]
        if question not in kept:
            kept[question] = _Kept(until=now + _LONGEST, answer=asyncio.ensure_future(ask()))
            kept[question].answer.add_done_callback(_failed)  # asyncio complains of an exception that nobody asks for
        return await asyncio.shield(kept[question].answer)


Reader = Api | Reads
"""What only reads takes either: `Api` for what decides about deletions and claims, `Reads` for looks."""


def _failed(answer: asyncio.Future[Any]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)
