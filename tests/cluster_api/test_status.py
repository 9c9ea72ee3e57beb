"""What is written of an object's status, and when."""

from __future__ import annotations

from typing import Any

import pytest

from metal_ipi.cluster_api import conditions
from metal_ipi.cluster_api.api import Object, Resource
from metal_ipi.cluster_api.clusters import Work
from metal_ipi.cluster_api.reconcilers import base
from metal_ipi.cluster_api.reconcilers.base import SOON, Reconciler, Said
from metal_ipi.cluster_api.resources import METAL_IPI_MACHINE
from tests.cluster_api.test_going import Objects, hub_of


class _Hub(Objects):
    """Counts what is written."""

    writes = 0

    async def patch(self, kind: Resource, namespace: str, name: str, body: Object, subresource: str = "") -> None:
        self.writes += 1
        item = self.there[kind.kind, name]
        for key in body:
            item[key] = {**item.get(key, {}), **body[key]}


class _Telling(Reconciler):
    resource = METAL_IPI_MACHINE.resource

    async def _reconcile(self, item: Object, work: Work) -> Said:
        raise NotImplementedError

    async def _gone(self, item: Object, work: Work) -> bool:
        raise NotImplementedError

    async def tell(self, item: Object, reason: str, message: str, **status: Any) -> float:
        """Write it; returns when it is told again."""
        said = Said(status=status).ready(False, reason, message)
        await self._write(item, said)
        return said.again


async def test_messages_are_written_now_and_then_and_all_else_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(base, "time", type("Clock", (), {"monotonic": staticmethod(lambda: now[0])}))
    hub = _Hub()
    item = hub.there["MetalIpiMachine", "a"] = {"metadata": {"name": "a", "namespace": "fleet", "generation": 1}}
    telling = _Telling(hub_of(hub))

    async def tell(reason: str, message: str, **status: Any) -> tuple[int, str, float]:
        again = await telling.tell(item, reason, message, **status)
        return hub.writes, item["status"]["conditions"][0]["message"], again

    assert await tell("Working", "1 s") == (1, "1 s", SOON)
    now[0] += 12
    assert await tell("Working", "13 s") == (1, "1 s", 3)  # in three seconds it may be written
    assert await tell("Failing", "13 s") == (2, "13 s", SOON)
    assert await tell("Failing", "13 s", failureDomain="a") == (3, "13 s", SOON)
    assert await tell("Failing", "14 s", failureDomain="b") == (4, "14 s", SOON)
    item["metadata"]["generation"] = 2
    assert await tell("Failing", "15 s", failureDomain="b") == (5, "15 s", SOON)
    now[0] += 16
    assert await tell("Failing", "31 s", failureDomain="b") == (6, "31 s", SOON)
    assert await tell("Failing", "31 s", failureDomain="b") == (6, "31 s", SOON)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({"message": "another"}, True),
        ({}, True),
        ({"reason": "Failing"}, False),
        ({"status": "True"}, False),
        ({"type": "Available"}, False),
    ],
)
def test_what_differs_in_messages(after: dict[str, Any], expected: bool) -> None:
    before = conditions.condition("Ready", False, "Working", "one")
    assert conditions.differ_in_messages({"conditions": [before]}, {"conditions": [{**before, **after}]}) == expected
