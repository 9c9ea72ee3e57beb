"""The install state of a cluster, which parallel steps write."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any, cast

import pytest

from metal_ipi.cluster_api.api import Api, ApiError
from metal_ipi.cluster_api.engine.state import Entry
from metal_ipi.cluster_api.store import SecretStore, key_of

_OWNER = {"apiVersion": "x/v1", "kind": "MetalIpiCluster", "metadata": {"name": "a", "namespace": "fleet", "uid": "1"}}
_URNS = [f"a::b::c::step-{number}" for number in range(5)]


class _Hub:
    """The Secret, and the keys of each request that changes it. The first `refuses` requests fail."""

    def __init__(self, *, refuses: int = 0, there: bool = True) -> None:
        self._refuses, self.data = refuses, cast("dict[str, str] | None", {} if there else None)
        self.requests: list[set[str]] = []

    async def patch(self, kind: Any, namespace: str, name: str, body: Mapping[str, Any]) -> Any:
        await asyncio.sleep(0.01)
        if self.data is None:
            return None
        self.requests.append(set(body["data"]))
        if len(self.requests) <= self._refuses:
            raise ApiError("the hub does not answer", 0)
        self.data = {key: text for key, text in {**self.data, **body["data"]}.items() if text is not None}
        return {}

    async def create(self, kind: Any, namespace: str, body: Mapping[str, Any]) -> Any:
        self.requests.append(set(body["data"]))
        self.data = dict(body["data"])
        return {}


def _entry(urn: str) -> Entry:
    return Entry(urn=urn, id="x", inputs={}, outputs={})


def _store(hub: _Hub) -> SecretStore:
    return SecretStore(cast(Api, hub), _OWNER, "a")


def _names(hub: _Hub) -> set[str]:
    return {Entry.unpacked(text).urn for text in (hub.data or {}).values()}


@pytest.mark.parametrize("there", [True, False])
async def test_what_parallel_steps_write_is_written_at_once(there: bool) -> None:
    hub = _Hub(there=there)
    store = _store(hub)
    await asyncio.gather(*(store.save(urn, _entry(urn)) for urn in _URNS))
    assert _names(hub) == set(_URNS) and len(hub.requests) <= 2
    await asyncio.gather(*(store.save(urn, None) for urn in _URNS[:3]), store.save(_URNS[4], _entry(_URNS[4])))
    assert _names(hub) == set(_URNS[3:]) and len(hub.requests) <= 4


async def test_who_could_not_write_is_told_and_the_others_write_again() -> None:
    hub = _Hub(refuses=1)
    store = _store(hub)
    found = await asyncio.gather(*(store.save(urn, _entry(urn)) for urn in _URNS), return_exceptions=True)
    # Which one writes first is not known: each entry is packed in a thread.
    (refused,) = (urn for urn, each in zip(_URNS, found, strict=True) if isinstance(each, ApiError))
    assert found.count(None) == len(_URNS) - 1
    assert _names(hub) == set(_URNS) - {refused}
    await store.save(refused, _entry(refused))
    assert _names(hub) == set(_URNS)


async def test_a_step_that_is_stopped_while_it_waits_writes_nothing() -> None:
    hub = _Hub()
    store = _store(hub)
    first, *others = (asyncio.create_task(store.save(urn, _entry(urn))) for urn in _URNS)
    await asyncio.sleep(0)
    late = asyncio.create_task(store.save("a::b::c::late", _entry("a::b::c::late")))
    await asyncio.sleep(0)  # the first writes, and the late one waits
    late.cancel()
    await asyncio.gather(first, *others)
    assert _names(hub) == set(_URNS)


async def test_the_secret_that_is_made_holds_no_removed_entries() -> None:
    hub = _Hub(there=False)
    store = _store(hub)
    await store.save(_URNS[0], None)
    assert hub.data is None
    await asyncio.gather(store.save(_URNS[0], None), store.save(_URNS[1], _entry(_URNS[1])))
    assert hub.data is not None and set(hub.data) == {key_of(_URNS[1])}
    assert base64.b64decode(hub.data[key_of(_URNS[1])])
