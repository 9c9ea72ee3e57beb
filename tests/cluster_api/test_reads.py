"""What is kept of the management cluster's answers, and what ends that."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from metal_ipi.cluster_api import reads
from metal_ipi.cluster_api.api import CLUSTER, MACHINE, Api, ApiError, Object, Resource
from metal_ipi.cluster_api.reads import Reads


class _Hub(Api):
    """Answers with how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.wrote = lambda *_: None
        self.answers = asyncio.Event()
        self.answers.set()
        self.fails = False

    async def _call(self, method: str, path: str, body: Any = None, *, query: Any = (), form: Any = None) -> Object:
        self.asked.append(f"{method} {path.partition('namespaces/')[2]}")
        number = len(self.asked)
        await self.answers.wait()
        if self.fails:
            raise ApiError("it does not answer", 0)
        return {"number": number, "items": [{"number": number}]}


@pytest.fixture
async def hub() -> _Hub:
    return _Hub()


async def _number(asked: Reads, name: str = "a", kind: Resource = CLUSTER) -> int:
    return (await asked.get(kind, "fleet", name) or {})["number"]


async def test_an_answer_is_kept_until_its_object_changes(hub: _Hub) -> None:
    asked = Reads(hub)
    assert [await _number(asked), await _number(asked)] == [1, 1]
    for other in (("Cluster", "fleet", "b"), ("Cluster", "other", "a"), ("Machine", "fleet", "a")):
        asked.forget(*other)
    assert await _number(asked) == 1
    asked.forget("Cluster", "fleet", "a")
    assert await _number(asked) == 2


async def test_a_list_is_kept_until_any_of_its_kind_changes(hub: _Hub) -> None:
    asked = Reads(hub)

    async def numbers() -> list[int]:
        return [(await asked.list(MACHINE, "fleet", labels))[0]["number"] for labels in ("", "of=a", "of=b", "of=a")]

    assert await numbers() == [1, 2, 3, 2]
    asked.forget("Cluster", "fleet", "new")
    assert await numbers() == [1, 2, 3, 2]
    asked.forget("Machine", "fleet", "new")
    assert await numbers() == [4, 5, 6, 5]


async def test_whatever_is_written_is_read_anew(hub: _Hub) -> None:
    asked, place = Reads(hub), (CLUSTER, "fleet", "a")
    for write in (
        lambda: hub.patch(*place, {"status": {}}, "status"),
        lambda: hub.apply(*place, {}),
        lambda: hub.delete(*place),
        lambda: hub.create(CLUSTER, "fleet", {"metadata": {"name": "a"}}),
        lambda: hub.replace(CLUSTER, "fleet", {"metadata": {"name": "a"}}),
    ):
        before = await _number(asked)
        await write()
        assert await _number(asked) == before + 2
    hub.fails = True  # it may have been done nevertheless
    before = len(hub.asked)
    with pytest.raises(ApiError):
        await hub.patch(*place, {})
    hub.fails = False
    assert await _number(asked) == before + 2
    assert hub.asked[1] == "PATCH fleet/clusters/a/status"


async def test_nothing_is_kept_for_long(hub: _Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, now = Reads(hub), 100.0
    monkeypatch.setattr(reads, "time", SimpleNamespace(monotonic=lambda: now))
    assert await _number(asked) == 1
    now = 104.9
    assert await _number(asked) == 1
    now = 105.1
    assert await _number(asked) == 2


async def test_all_who_ask_at_once_share_an_answer(hub: _Hub) -> None:
    asked = Reads(hub)
    hub.answers.clear()
    first = [asyncio.ensure_future(_number(asked)) for _ in range(3)]
    await asyncio.sleep(0)
    first[0].cancel()  # the others have it nevertheless
    await asyncio.sleep(0)
    asked.forget("Cluster", "fleet", "a")  # what was asked before this may be old: it is not kept
    late = asyncio.ensure_future(_number(asked))
    await asyncio.sleep(0)
    hub.answers.set()
    assert await asyncio.gather(*first[1:], late) == [1, 1, 2]
    assert await _number(asked) == 2


async def test_a_failure_is_not_kept(hub: _Hub) -> None:
    asked = Reads(hub)
    hub.fails = True
    with pytest.raises(ApiError, match="it does not answer"):
        await _number(asked)
    hub.fails = False
    assert await _number(asked) == 2


class _Objects(Api):
    """One object, or none, as it is now."""

    def __init__(self) -> None:
        self.wrote = lambda *_: None
        self.now: Object | None = None
        self.asked = 0

    async def get(self, kind: Resource, namespace: str, name: str) -> Object | None:
        self.asked += 1
        return self.now

    async def list(self, kind: Resource, namespace: str, labels: str = "") -> list[Object]:
        self.asked += 1
        return [self.now] if self.now else []


def _at(version: int, *, cluster: str = "c") -> Object:
    labels = {"cluster.x-k8s.io/cluster-name": cluster}
    metadata = {"namespace": "fleet", "name": "a", "resourceVersion": str(version), "labels": labels}
    return {"kind": "Machine", "metadata": metadata}


async def test_what_a_watch_tells_is_not_asked_for() -> None:
    hub = _Objects()
    asked, hub.now = Reads(hub), _at(10)
    for version, gone, expected, times in (
        (9, False, 10, 1),  # an event that comes late
        (12, False, 12, 1),
        (12, False, 12, 1),
        (11, True, 12, 1),  # of one of the same name before
        (13, True, 10, 2),  # it is gone: the hub is asked what there is now
    ):
        assert await asked.get(MACHINE, "fleet", "a") is not None
        asked.saw(_at(version), gone=gone)
        found = await asked.get(MACHINE, "fleet", "a")
        assert found is not None and found["metadata"]["resourceVersion"] == str(expected)
        assert hub.asked == times


async def test_an_event_does_not_take_the_place_of_what_was_written_or_is_asked_for_or_was_not_there() -> None:
    hub = _Objects()
    asked, hub.now = Reads(hub), _at(10)
    await asked.get(MACHINE, "fleet", "a")
    asked.forget("Machine", "fleet", "a")  # this process has written it
    asked.saw(_at(11), gone=False)
    hub.now = _at(12)
    pending = asyncio.ensure_future(asked.get(MACHINE, "fleet", "a"))
    await asyncio.sleep(0)
    asked.saw(_at(11), gone=False)
    assert await pending == _at(12) and await asked.get(MACHINE, "fleet", "a") == _at(12) and hub.asked == 3
    asked.forget("Machine", "fleet", "a")
    hub.now = None
    assert await asked.get(MACHINE, "fleet", "a") is None
    asked.saw(_at(13), gone=False)
    assert await asked.get(MACHINE, "fleet", "a") is None and hub.asked == 5


async def test_a_list_of_another_cluster_is_kept() -> None:
    hub = _Objects()
    asked = Reads(hub)

    async def lists() -> int:
        before = hub.asked
        for labels in ("cluster.x-k8s.io/cluster-name=c,of=x", "cluster.x-k8s.io/cluster-name=d", ""):
            await asked.list(MACHINE, "fleet", labels)
        return hub.asked - before

    assert (await lists(), await lists()) == (3, 0)
    asked.saw(_at(1), gone=False)
    assert await lists() == 2
    asked.saw(_at(2, cluster="e"), gone=True)
    assert await lists() == 1


async def test_what_is_watched_is_kept_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not for ever: a connection that broke unnoticed tells nothing."""
    hub = _Objects()
    asked, now = Reads(hub), 100.0
    monkeypatch.setattr(reads, "time", SimpleNamespace(monotonic=lambda: now))
    asked.watched = frozenset({"Machine"})
    await asked.get(MACHINE, "fleet", "a")
    now = 159.0
    await asked.get(MACHINE, "fleet", "a")
    assert hub.asked == 1
    now = 161.0
    await asked.get(MACHINE, "fleet", "a")
    assert hub.asked == 2
