"""When a MetalIpiCluster lets the others of its cluster begin, and when it is provisioned."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from metal_ipi.cluster_api.api import Object
from metal_ipi.cluster_api.clusters import ANSWERS, KEYS, Work
from metal_ipi.cluster_api.reconcilers.base import CALLED, LATER, SOON
from metal_ipi.cluster_api.reconcilers.control_plane import ControlPlaneReconciler
from metal_ipi.cluster_api.reconcilers.facility import FacilityReconciler
from metal_ipi.cluster_api.reconcilers.machine import MachineReconciler
from metal_ipi.cluster_api.resources import OPENSHIFT_CONTROL_PLANE
from tests.cluster_api.test_going import Objects, Steps, hub_of, work_of


class _Engine(Steps):
    """Whose plan has these steps left."""

    left: tuple[str, ...] = ()
    advanced = 0

    def advance(self, plan: Any, mine: Any) -> None:
        self.advanced += 1

    def running(self, mine: Any) -> dict[str, str]:
        return {}

    def failures(self, mine: Any) -> list[Any]:
        return []

    async def look(self, declaration: Any) -> Any:
        left = [SimpleNamespace(name=each) for each in self.left]
        return SimpleNamespace(steps={}, waiting=lambda mine: [each for each in left if mine(each.name)])


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


def test_it_waits_until_it_may_be_installed(facility: Object) -> None:
    objects, work = Objects(), _work(facility, KEYS)
    installing = {"type": "Installing", "status": "True", "reason": "Installing"}
    metadata = {"name": "other", "namespace": "elsewhere", "uid": "2"}
    objects.there["MetalIpiCluster", "other"] = {"metadata": metadata, "status": {"conditions": [installing]}}
    objects.there["MetalIpiCluster", "rack"] = facility
    hub = hub_of(objects, installing=1)

    def look() -> tuple[dict[str, Any], float, bool]:
        said = asyncio.run(FacilityReconciler(hub)._reconcile(facility, work))  # pyright: ignore[reportPrivateUsage]
        checked = replace(work, facility={**facility, "status": {"conditions": said.conditions}})
        found = {each["type"]: (each["status"], each["reason"]) for each in said.conditions}
        return found, said.again, MachineReconciler(hub)._held(checked)  # pyright: ignore[reportPrivateUsage]

    waits = ("False", "TooManyInstalling")
    assert look() == ({"PreflightPassed": ("True", "Passed"), "Installing": waits, "Ready": waits}, LATER, True)
    hub = hub_of(objects, installing=2)
    begins = {"Installing": ("True", "Installing"), "Ready": ("False", "WaitingForApi")}
    assert look() == ({"PreflightPassed": ("True", "Passed"), **begins}, SOON, False)
    hub = hub_of(objects)  # without a limit only what there was is corrected
    assert "Installing" not in look()[0]
    facility["status"] = {"conditions": [{"type": "Installing", "status": "False", "reason": "TooManyInstalling"}]}
    assert look()[0] == {"PreflightPassed": ("True", "Passed"), **begins}


def test_its_control_plane_runs_no_step_until_then(facility: Object) -> None:
    """Not even the installer, whose certificates are good for a day."""
    passed = {"conditions": [{"type": "PreflightPassed", "status": "True"}]}
    work = _work({**facility, "status": passed}, KEYS, left=("install-assets-create",))
    replicas, version = len(work.nodes.control_plane), f"v{work.settings.openshift_version}"
    template = {"spec": {"infrastructureRef": {"kind": "MetalIpiMachineTemplate", "name": "rack"}}}
    spec = {"replicas": replicas, "version": version, "machineTemplate": template}
    kind = OPENSHIFT_CONTROL_PLANE.resource
    metadata = {"name": "rack", "namespace": "facility", "uid": "3"}
    item = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
    engine = cast(_Engine, work.engine)
    for limit, ran, reason, again in ((1, 0, "WaitingForFacility", CALLED), (0, 1, "Waiting", SOON)):
        engine.advanced, objects = 0, Objects()
        objects.there["MetalIpiMachineTemplate", "rack"] = {"spec": {"template": {"spec": {}}}}
        reconciler = ControlPlaneReconciler(hub_of(objects, installing=limit))
        said = asyncio.run(reconciler._reconcile(item, work))  # pyright: ignore[reportPrivateUsage]
        (available,) = (each["reason"] for each in said.conditions if each["type"] == "Available")
        assert (engine.advanced, available, said.again) == (ran, reason, again)
