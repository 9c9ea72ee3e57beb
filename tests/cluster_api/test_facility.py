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
    async def own(self) -> None:
        return


def _said(facility: Object, *done: str, left: tuple[str, ...] = ()) -> tuple[dict[str, Any], dict[str, Any], Work]:
    """The conditions and the rest of its status; and what the others of the cluster see then."""
    engine = _Engine(*done)
    engine.left = left
    work = replace(work_of(engine), facility=facility, store=cast(Any, _Store()))
    said = asyncio.run(FacilityReconciler(hub_of(Objects()))._reconcile(facility, work))  # pyright: ignore[reportPrivateUsage]
    status = {**said.status, "conditions": said.conditions}
    found = {each["type"]: (each["status"], each["reason"]) for each in said.conditions}
    return found, said.status, replace(work, facility={**facility, "status": status})


@pytest.fixture
def facility() -> Object:
    return {"metadata": {"name": "rack", "namespace": "facility"}, "spec": {}}


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
