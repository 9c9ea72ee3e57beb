"""The claims of servers, without a hub."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from metal_ipi.cluster_api import claims
from metal_ipi.cluster_api.api import LEASE, Object, Resource
from metal_ipi.cluster_api.claims import Claims
from tests.cluster_api.test_going import Objects

_MAC, _MACHINE, _OTHER = "52:54:00:00:00:01", "facility/one", "facility/two"


class _Counted(Objects):
    asked = 0

    async def get(self, kind: Resource, namespace: str, name: str) -> Object | None:
        self.asked += kind is LEASE
        return await super().get(kind, namespace, name)


def test_a_claim_that_was_seen_just_now_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    api, now = _Counted(), [1000.0]
    monkeypatch.setattr("metal_ipi.cluster_api.claims.time.monotonic", lambda: now[0])
    found = Claims(cast(Any, api), "ours")

    async def has(machine: str) -> tuple[bool, int]:
        before = api.asked
        return await found.has(_MAC, machine), api.asked - before

    async def whole() -> None:
        assert await has(_MACHINE) == (False, 1) and await has(_MACHINE) == (False, 1)
        await found.claim(_MAC, _MACHINE)
        assert await has(_MACHINE) == (True, 1) and await has(_MACHINE) == (True, 0)
        assert await has(_OTHER) == (False, 1)
        now[0] += claims.SURE
        assert await has(_MACHINE) == (True, 1)
        await found.give_back(_MACHINE)
        assert await has(_MACHINE) == (False, 1)

    asyncio.run(whole())


def test_a_claim_that_is_given_back_while_it_is_asked_for_does_not_count() -> None:
    """Another machine may have the same name a moment later."""

    class Slow(_Counted):
        async def get(self, kind: Resource, namespace: str, name: str) -> Object | None:
            found = await super().get(kind, namespace, name)
            await asyncio.sleep(0.01)
            return found

    async def whole() -> None:
        found = Claims(cast(Any, Slow()), "ours")
        await found.claim(_MAC, _MACHINE)
        asked, _ = await asyncio.gather(found.has(_MAC, _MACHINE), found.give_back(_MACHINE))
        assert asked and not await found.has(_MAC, _MACHINE)

    asyncio.run(whole())
