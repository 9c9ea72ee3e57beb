"""Answers of the management cluster's API that are kept for a moment: all objects of a cluster ask for the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from metal_ipi.cluster_api.api import Api, Object, Resource, labels_of
from metal_ipi.cluster_api.store import CLUSTER_LABEL

_LONGEST, _WATCHED = 5.0, 60.0
"""Seconds for which an answer is kept: nobody tells of changes of kinds that are not watched, such as Secrets; those of
the others are events, which come late where a connection broke unnoticed (kopf notices after 70 s)."""


@dataclass(frozen=True, kw_only=True)
class _Kept:
    until: float
    """On the monotonic clock."""
    answer: asyncio.Future[Any]


class Reads:
    """Asks an `Api`, and keeps each answer for 5 s, one of a kind that is watched for 60 s. What a watch tells takes
    its place, and whatever this `Api` writes is forgotten. An answer is shared, and must not be changed.

    Not for what decides about deletions and claims: that is asked of the `Api` itself.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        api.wrote = self.forget
        self.watched = frozenset[str]()
        """The kinds of which `saw` is told all changes."""
        self._kept: dict[tuple[str, str], dict[str, _Kept]] = {}
        """By kind and namespace; each by the name of its object, or by the labels of a list behind a question mark."""

    async def get(self, kind: Resource, namespace: str, name: str) -> Object | None:
        """As `Api.get`."""
        return await self._read(kind, namespace, name, partial(self._api.get, kind, namespace, name))

    async def list(self, kind: Resource, namespace: str, labels: str = "") -> list[Object]:
        """As `Api.list`."""
        return await self._read(kind, namespace, f"?{labels}", partial(self._api.list, kind, namespace, labels))

    def forget(self, kind: str, namespace: str, name: str) -> None:
        """An object may have changed: the next question about it, or about several of its kind, is asked anew."""
        kept = self._kept.get((kind, namespace), {})
        for question in [each for each in kept if each == name or each.startswith("?")]:
            del kept[question]

    def saw(self, item: Object, *, gone: bool) -> None:
        """A watch told how an object is now, or how it was when it was deleted. Events come in order, but late: one
        that is older than what was read meanwhile, or written, counts for nothing."""
        metadata = item["metadata"]
        kept, name = self._kept.get((item["kind"], metadata["namespace"]), {}), metadata["name"]
        for question in [each for each in kept if each.startswith("?") and _is_about(each, item)]:
            del kept[question]
        old = kept.pop(name, None)
        if old is None or not old.answer.done() or _failed(old.answer) or old.answer.result() is None:
            return
        if _version(item) <= _version(old.answer.result()):
            kept[name] = old
        elif not gone:
            answer = asyncio.get_running_loop().create_future()
            answer.set_result(item)
            kept[name] = self._new(item["kind"], answer)

    async def _read(
        self, kind: Resource, namespace: str, question: str, ask: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:
        kept, now = self._kept.setdefault((kind.kind, namespace), {}), time.monotonic()
        for each in [each for each, old in kept.items() if old.until <= now or _failed(old.answer)]:
            del kept[each]
        if question not in kept:
            kept[question] = self._new(kind.kind, asyncio.ensure_future(ask()))
            kept[question].answer.add_done_callback(_failed)  # asyncio complains of an exception that nobody asks for
        return await asyncio.shield(kept[question].answer)

    def _new(self, kind: str, answer: asyncio.Future[Any]) -> _Kept:
        return _Kept(until=time.monotonic() + (_WATCHED if kind in self.watched else _LONGEST), answer=answer)


Reader = Api | Reads
"""What only reads takes either: `Api` for what decides about deletions and claims, `Reads` for looks."""


def _failed(answer: asyncio.Future[Any]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)


def _version(item: Object) -> int:
    """An object's resourceVersion: of two of the same kind the greater one is newer (k8s.io/apimachinery 0.35,
    pkg/util/resourceversion; before it, what etcd counts)."""
    return int(item["metadata"]["resourceVersion"])


def _is_about(question: str, item: Object) -> bool:
    """Whether an object's change may change a list by labels. Only its cluster's label tells: another one may be what
    it has just lost."""
    labels = labels_of(item)
    wanted = (each.partition("=") for each in question.removeprefix("?").split(",") if each)
    return all(key != CLUSTER_LABEL or labels.get(key) == value for key, _, value in wanted)
