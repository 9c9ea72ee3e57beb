"""When a MetalIpiCluster lets the others of its cluster begin, and when it is provisioned."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from metal_ipi.cluster_api.api import Object
from metal_ipi.cluster_api.clusters import ANSWERS, KEYS, Work
from metal_ipi.cluster_api.reconcilers.facility import FacilityReconciler
from tests.cluster_api.test_going import Objects, Steps, hub_of, work_of


class _Engine(Steps):
    """Whose plan has these steps left."""

    left: tuple[str, ...] = ()

    def advance(self, plan: Any, mine: Any) -> None:
        return

    def running(self, mine: Any) -> dict[str, str]:
        return {}

    def failures(self, mine: Any) -> list[Any]:
        return []

    async def look(self, declaration: Any) -> Any:
        return SimpleNamespace(waiting=lambda mine: [SimpleNamespace(name=each) for each in self.left if mine(each)])


class _Store:
    def __init__(self) -> None:
        self.there, self.looks = True, 0

    async def own(self) -> bool:
        self.looks += 1
        return self.there


def _work(facility: Object, *done: str, left: tuple[str, ...] = (), store: _Store | None = None) -> Work:
    engine = _Engine(*done)
    engine.left = left
    return replace(work_of(engine), facility=facility, store=cast(Any, store or _Store()))


def _said(facility: Object, *done: str, left: tuple[str, ...] = ()) -> tuple[dict[str, Any], dict[str, Any], Work]:
    """The conditions and the rest of its status; and what the others of the cluster see then."""
    work = _work(facility, *done, left=left)
    said = asyncio.run(FacilityReconciler(hub_of(Objects()))._reconcile(facility, work))  # pyright: ignore[reportPrivateUsage]
    status = {**said.status, "conditions": said.conditions}
    found = {each["type"]: (each["status"], each["reason"]) for each in said.conditions}
    return found, said.status, replace(work, facility={**facility, "status": status})


@pytest.fixture
def facility() -> Object:
    return {"metadata": {"name": "rack", "namespace": "facility", "uid": "1"}, "spec": {}}


def test_it_is_provisioned_when_the_api_answers(facility: Object) -> None:
    """Cluster API connects then, and after a failure not again for 30 seconds."""
    found, status, work = _said(facility, left=(KEYS, "preflight"))
    assert found == {"Ready": ("False", "Waiting")} and "initialization" not in status and not work.checked
    found, status, work = _said(facility, KEYS, left=(ANSWERS,))
    assert found == {"PreflightPassed": ("True", "Passed"), "Ready": ("False", "WaitingForApi")}
    assert "initialization" not in status and work.checked
    found, status, work = _said(facility, KEYS, ANSWERS)
    assert found == {"PreflightPassed": ("True", "Passed"), "Ready": ("True", "Provisioned")}
    assert status["initialization"] == {"provisioned": True} and work.checked


def test_it_stays_provisioned(facility: Object) -> None:
    """Also where providers of before called it provisioned without an API."""
    before = {"initialization": {"provisioned": True}}
    found, status, work = _said({**facility, "status": before}, KEYS, left=("preflight", ANSWERS))
    assert found == {"PreflightPassed": ("True", "Passed"), "Ready": ("False", "Waiting")}
    assert status["initialization"] == {"provisioned": True} and work.checked
    found, _, _ = _said({**facility, "status": before}, KEYS, left=(ANSWERS,))
    assert found["Ready"] == ("True", "Provisioned")


def test_the_others_may_go_on_while_the_preflight_is_repeated(facility: Object) -> None:
    passed = {"conditions": [{"type": "PreflightPassed", "status": "True"}]}
    found, status, work = _said({**facility, "status": passed}, KEYS, left=("preflight", ANSWERS))
    assert found == {"PreflightPassed": ("True", "Passed"), "Ready": ("False", "Waiting")}
    assert "initialization" not in status and work.checked


def test_whose_its_secrets_are_is_not_asked_at_each_look(facility: Object) -> None:
    """The install state is large; an object of the same name that is made anew is another one."""
    store = _Store()
    work, reconciler = _work(facility, KEYS, store=store), FacilityReconciler(hub_of(Objects()))

    async def looks(*facilities: Object) -> int:
        before = store.looks
        for each in facilities:
            await reconciler._reconcile(each, work)  # pyright: ignore[reportPrivateUsage]
        return store.looks - before

    store.there = False
    assert asyncio.run(looks(facility, facility)) == 2, "there is no install state yet"
    store.there = True
    assert asyncio.run(looks(facility, facility, facility)) == 1
    anew = {**facility, "metadata": {**facility["metadata"], "uid": "2"}}
    assert asyncio.run(looks(anew, anew)) == 1
