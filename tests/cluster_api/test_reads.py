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
