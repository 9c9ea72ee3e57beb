"""How many machines of all clusters of a hub may be away at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from metal_ipi.cluster_api import absences
from metal_ipi.cluster_api.absences import Absences, TooManyAway
from metal_ipi.cluster_api.api import LEASE, MACHINE, Api, Object, Resource
from metal_ipi.cluster_api.clusters import FORMED, Clusters, NotUsable, Work
from metal_ipi.cluster_api.reads import Reader
from metal_ipi.cluster_api.reconcilers import joined, own_remediation, quorum
from metal_ipi.cluster_api.reconcilers import remediation as remediations
from metal_ipi.cluster_api.reconcilers.machine import HOOK, MachineReconciler
from metal_ipi.cluster_api.store import CLUSTER_LABEL, NAME_LABEL
from tests.cluster_api.test_going import Objects, Steps, hub_of, work_of
from tests.cluster_api.test_remediation import Acting

_DEPLOYMENT = "cluster.x-k8s.io/deployment-name"
_THEN = "2026-01-01T00:00:00Z"


class Fleet(Objects):
    """Clusters of a hub whose machines are all there."""

    def __init__(self, *clusters: str) -> None:
        super().__init__()
        self.works: dict[str, Work] = {}
        for name in clusters:
            metadata = {"name": name, "namespace": "facility"}
            self.there["Cluster", name] = {"metadata": metadata, "spec": {}}
            self.works[name] = replace(work_of(Steps(FORMED)), cluster=self.there["Cluster", name])
            self.there["MachineDeployment", name] = {"spec": {"replicas": 3}}
            for number in range(3):
                self.machine(name, f"worker-{number}")

    async def apply(
        self, kind: Resource, namespace: str, name: str, body: Object, subresource: str = "", *, manager: str = ""
    ) -> None:
        self.there[kind.kind, name].setdefault("status", {})["told"] = body["status"]["conditions"]

    async def patch(self, kind: Resource, namespace: str, name: str, body: Object, subresource: str = "") -> None:
        item = self.there[kind.kind, name]
        changed: Mapping[str, str | None] = (body.get("metadata") or {}).get("annotations") or {}
        if changed:
            there = {**(item["metadata"].get("annotations") or {}), **changed}
            item["metadata"]["annotations"] = {key: value for key, value in there.items() if value is not None}
        for key in ("spec", "status"):
            item.setdefault(key, {}).update(body.get(key) or {})

    def machine(self, cluster: str, server: str, *, name: str = "", has_joined: bool = True) -> Object:
        """A Machine with its MetalIpiMachine."""
        name = name or f"{cluster}-{server}"
        labels = {CLUSTER_LABEL: cluster, _DEPLOYMENT: cluster}
        metadata: Object = {"name": name, "namespace": "facility", "labels": labels}
        self.there["Machine", name] = machine = {
            "metadata": metadata,
            "spec": {"bootstrap": {}},
            "status": {"nodeRef": {"name": server}} if has_joined else {},
        }
        reason = "Joined" if has_joined else "Working"
        condition = {"type": "Ready", "status": str(has_joined), "reason": reason, "lastTransitionTime": _THEN}
        self.there["MetalIpiMachine", name] = {
            "metadata": {**metadata, "ownerReferences": [{"kind": "Machine", "name": name}]},
            "spec": {"server": server},
            "status": {"conditions": [condition]},
        }
        return machine

    def leaves(self, cluster: str, server: str) -> Object:
        """Its Machine is deleted; answers it."""
        machine = self.there["Machine", f"{cluster}-{server}"]
        machine["metadata"]["deletionTimestamp"] = "now"
        return machine

    def gone(self, cluster: str, server: str) -> None:
        """Nothing of it is there any more."""
        for kind in ("Machine", "MetalIpiMachine"):
            del self.there[kind, f"{cluster}-{server}"]

    def ill(self, cluster: str, server: str, *, lost: bool = True) -> Object:
        """A MachineHealthCheck found it not healthy, and its node is gone if `lost`; answers the Machine."""
        name = f"{cluster}-{server}"
        machine = self.there["Machine", name]
        machine["status"]["conditions"] = [
            {"type": kind, "status": "False", "lastTransitionTime": _THEN}
            for kind in ("HealthCheckSucceeded", "OwnerRemediated")
        ]
        if lost:
            self.there["MetalIpiMachine", name]["status"]["conditions"][0].update(status="False", reason="NodeGone")
        return machine

    async def take(self, limit: Absences, cluster: str, server: str, why: str = "deleted") -> str:
        """Why a machine has to wait; empty: it is away."""
        machine = self.there["Machine", f"{cluster}-{server}"]
        try:
            await limit.take(self.works[cluster], machine, server, why)
        except TooManyAway as error:
            return str(error)
        return ""

    async def away(self) -> list[str]:
        """Who has a Lease."""
        return sorted(each["spec"]["holderIdentity"] for each in await self.list(LEASE, "own", absences.LABEL))


@pytest.fixture(autouse=True)
def _read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absences, "_FRESH", 0.0)
    monkeypatch.setattr("metal_ipi.cluster_api.settings.connected", lambda settings: None)


def _run(whole: Coroutine[Any, Any, None]) -> None:
    asyncio.run(whole)


def _of(fleet: Fleet, limit: int, *, least: float = 0.0) -> Absences:
    return Absences(cast(Api, fleet), "own", limit, least=least)


def test_a_machine_of_another_cluster_waits_until_the_first_is_back(caplog: pytest.LogCaptureFixture) -> None:
    async def whole() -> None:
        fleet = Fleet("a", "b")
        limit = _of(fleet, 1)
        fleet.leaves("a", "worker-0")
        assert await fleet.take(limit, "a", "worker-0") == ""
        assert await fleet.take(limit, "a", "worker-0") == ""  # it has its place
        why = ""
        for _ in range(3):
            why = await fleet.take(limit, "b", "worker-1")
            assert "1 may be at once (--max-away)" in why and "facility/a/worker-0 (deleted, since 20" in why
        assert limit.waits(fleet.works["b"], "worker-1") and limit.count == 1
        assert [each.getMessage() for each in caplog.records if "waits" in each.getMessage()] == [
            f"facility/b/worker-1: {why}"  # once, not at each look
        ]
        fleet.gone("a", "worker-0")
        assert await fleet.take(limit, "b", "worker-1")  # its MachineSet has made no other one yet
        fleet.machine("a", "worker-0", has_joined=False)
        assert await fleet.take(limit, "b", "worker-1")
        fleet.machine("a", "worker-0")
        assert await fleet.take(limit, "b", "worker-1") == ""
        assert await fleet.away() == ["facility/b/worker-1"] and not limit.waits(fleet.works["b"], "worker-1")

    caplog.set_level("INFO")
    _run(whole())


def test_what_is_scaled_down_or_replaced_elsewhere_is_away_no_longer() -> None:
    async def whole() -> None:
        fleet = Fleet("a")
        limit = _of(fleet, 2)
        # One of three is not wanted any more; another one is replaced, by a machine on a spare server.
        fleet.there["MachineDeployment", "a"]["spec"]["replicas"] = 2
        for server in ("worker-0", "worker-1"):
            fleet.leaves("a", server)
            assert await fleet.take(limit, "a", server) == ""
        assert await fleet.take(limit, "a", "worker-2")
        fleet.gone("a", "worker-0")
        fleet.gone("a", "worker-1")
        await limit.settle(fleet.works["a"])
        assert len(await fleet.away()) == 1
        fleet.machine("a", "worker-3", has_joined=False)
        await limit.settle(fleet.works["a"])
        assert len(await fleet.away()) == 1
        fleet.machine("a", "worker-3")
        await limit.settle(fleet.works["a"])
        assert await fleet.away() == []
        # That more are wanted than there ever were holds no place.
        fleet.there["MachineDeployment", "a"]["spec"]["replicas"] = 9
        fleet.leaves("a", "worker-2")
        assert await fleet.take(limit, "a", "worker-2") == ""
        fleet.gone("a", "worker-2")
        fleet.machine("a", "worker-4")
        await limit.settle(fleet.works["a"])
        assert await fleet.away() == []

    _run(whole())


def test_one_that_is_back_ends_its_own_absence_and_no_other() -> None:
    async def whole() -> None:
        fleet = Fleet("a")
        limit = _of(fleet, 2)
        for server in ("worker-0", "worker-1"):
            fleet.leaves("a", server)
            assert await fleet.take(limit, "a", server) == ""
            fleet.gone("a", server)
        fleet.machine("a", "worker-0", name="a-new")
        assert await fleet.take(limit, "a", "worker-2") == ""
        assert await fleet.away() == ["facility/a/worker-1", "facility/a/worker-2"]
        # One that is being installed is missed for itself only, not for one that was replaced elsewhere.
        fleet.gone("a", "worker-2")
        fleet.machine("a", "worker-1", has_joined=False)
        fleet.machine("a", "worker-5")
        await limit.settle(fleet.works["a"])
        assert await fleet.away() == ["facility/a/worker-1"]

    _run(whole())


def test_a_machine_that_is_lost_meanwhile_keeps_no_place() -> None:
    """Else with a limit of one it could never be remediated."""

    async def whole() -> None:
        fleet = Fleet("a")
        limit = _of(fleet, 1)
        fleet.leaves("a", "worker-0")
        assert await fleet.take(limit, "a", "worker-0") == ""
        fleet.gone("a", "worker-0")
        fleet.ill("a", "worker-1")
        fleet.machine("a", "worker-5")
        assert await fleet.take(limit, "a", "worker-1", "power-cycled") == ""
        # It stays until it is healthy; then its place is free.
        assert await fleet.take(limit, "a", "worker-2")
        fleet.there["Machine", "a-worker-1"]["status"].pop("conditions")
        assert await fleet.take(limit, "a", "worker-2")  # its node is still gone
        fleet.machine("a", "worker-1")
        fleet.ill("a", "worker-1", lost=False)  # its node is there, but nobody has told yet that it is healthy
        assert await fleet.take(limit, "a", "worker-2")
        fleet.machine("a", "worker-1")
        assert await fleet.take(limit, "a", "worker-2") == ""

    _run(whole())


def test_a_machine_that_waits_for_its_own_group_is_none_of_those_that_are_missed() -> None:
    """Else the two would wait for each other."""

    async def whole() -> None:
        fleet = Fleet("a")
        limit = _of(fleet, 1)
        fleet.leaves("a", "worker-0")
        assert await fleet.take(limit, "a", "worker-0") == ""
        fleet.leaves("a", "worker-1")
        assert await fleet.take(limit, "a", "worker-1")
        fleet.gone("a", "worker-0")
        assert await fleet.take(limit, "a", "worker-1")
        fleet.machine("a", "worker-5")  # in its place, on a spare server
        assert await fleet.take(limit, "a", "worker-1") == ""
        # It leaves now, and has its own place; that of another one is not kept for it.
        assert await fleet.away() == ["facility/a/worker-1"]
        wider = _of(fleet, 2)
        assert await fleet.take(wider, "a", "worker-2") == ""
        fleet.gone("a", "worker-1")
        fleet.leaves("a", "worker-2")
        await wider.settle(fleet.works["a"])
        assert await fleet.away() == ["facility/a/worker-1", "facility/a/worker-2"]

    _run(whole())


def test_what_frees_the_place_of_one_that_never_comes_back() -> None:
    async def whole(end: str) -> None:
        fleet = Fleet("a", "b")
        limit = _of(fleet, 1)
        fleet.leaves("a", "worker-0")
        assert await fleet.take(limit, "a", "worker-0") == ""
        fleet.gone("a", "worker-0")
        fleet.machine("a", "worker-0", name="a-again", has_joined=False)
        assert await fleet.take(limit, "b", "worker-0")
        match end:
            case "scaled":
                fleet.there["MachineDeployment", "a"]["spec"]["replicas"] = 2
                for kind in ("Machine", "MetalIpiMachine"):
                    del fleet.there[kind, "a-again"]
            case "deleted":
                fleet.there["Cluster", "a"]["metadata"]["deletionTimestamp"] = "now"
            case "moved":
                del fleet.there["Cluster", "a"]
            case _:  # by people
                (lease,) = await fleet.list(LEASE, "own")
                await fleet.delete(LEASE, "own", lease["metadata"]["name"])
        assert await fleet.take(limit, "b", "worker-0") == ""
        assert await fleet.away() == ["facility/b/worker-0"]

    for end in ("scaled", "deleted", "moved", "people"):
        _run(whole(end))


def test_an_absence_lasts_a_minute() -> None:
    """A node says Ready for 40 s after its server lost its power."""

    async def whole() -> None:
        fleet = Fleet("a", "b")
        limit = _of(fleet, 1, least=60.0)
        assert await fleet.take(limit, "a", "worker-0", "power-cycled") == ""
        assert await fleet.take(limit, "b", "worker-0")
        (lease,) = await fleet.list(LEASE, "own")
        lease["spec"]["acquireTime"] = "2026-01-01T00:00:00.000000Z"
        # Another process, which knows of it by its Lease only.
        assert await fleet.take(_of(fleet, 1, least=60.0), "b", "worker-0") == ""

    _run(whole())


def test_what_is_not_limited() -> None:
    async def whole() -> None:
        fleet = Fleet("a", "b")
        assert await fleet.take(_of(fleet, 0), "a", "worker-0") == "" and await fleet.away() == []
        limit = _of(fleet, 1)
        assert await fleet.take(limit, "a", "worker-0") == ""
        fleet.machine("b", "worker-4", has_joined=False)  # it is in no service
        assert await fleet.take(limit, "b", "worker-4") == ""
        fleet.works["b"].cluster["metadata"]["deletionTimestamp"] = "now"
        assert await fleet.take(limit, "b", "worker-0") == ""
        forming = replace(work_of(Steps("rack-worker-0-server")), cluster=fleet.there["Cluster", "a"])
        await limit.take(forming, fleet.there["Machine", "a-worker-1"], "worker-1", "deleted")
        assert await fleet.away() == ["facility/a/worker-0"]

    _run(whole())


def _reconciler(fleet: Fleet, limit: int, name: str) -> MachineReconciler:
    class One(Clusters):
        async def open(self, cluster: Object, reader: Reader) -> Work:
            return fleet.works[name]

        recent = open

    return MachineReconciler(hub_of(fleet, One(cast(Api, fleet)), limit=limit))


def test_a_machine_that_waits_is_not_drained_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cluster API drains before it deletes a MetalIpiMachine: it is held before that."""

    async def whole() -> None:
        fleet = Fleet("a", "b")
        reconciler = _reconciler(fleet, 1, "b")
        facility = {"status": {"initialization": {"provisioned": True}}}
        fleet.works["b"] = replace(fleet.works["b"], facility=facility)

        async def claim(*_: Any) -> None:
            raise NotUsable("Stop", "what comes next is not of this test")

        monkeypatch.setattr(reconciler, "_claim", claim)

        def said(name: str = "b-worker-0") -> str:
            found = fleet.there["MetalIpiMachine", name]["status"]["conditions"]
            ready = next(each for each in found if each["type"] == "Ready")
            return ready["message"] if ready["reason"] == "TooManyAway" else ready["reason"]

        async def look(name: str = "b-worker-0") -> tuple[str, bool]:
            await reconciler.reconcile("facility", name)
            return said(name), HOOK in (fleet.there["Machine", name]["metadata"].get("annotations") or {})

        assert await look() == ("Stop", True)
        fleet.machine("b", "worker-4", has_joined=False)
        assert await look("b-worker-4") == ("Stop", False)  # one that never joined may go at any time
        hub = reconciler._hub  # pyright: ignore[reportPrivateUsage]
        fleet.leaves("a", "worker-0")
        assert await fleet.take(hub.absences, "a", "worker-0") == ""
        fleet.leaves("b", "worker-0")
        message, hooked = await look()
        assert "facility/a/worker-0 (deleted" in message and hooked
        # The same where nothing held it before: its server runs on.
        item, work = fleet.there["MetalIpiMachine", "b-worker-0"], fleet.works["b"]
        item["metadata"]["deletionTimestamp"] = "now"
        steps = Acting(FORMED, "rack-worker-0-server", "rack-worker-0-installation")
        fleet.works["b"] = replace(work, engine=cast(Any, steps))
        await hub.claims.claim(work.servers["worker-0"].mac, "facility/b-worker-0")
        assert not await reconciler.gone("facility", "b-worker-0") and not steps.began
        assert "facility/a/worker-0 (deleted" in said()
        # It goes when the other one is back.
        del fleet.there["Machine", "a-worker-0"]["metadata"]["deletionTimestamp"]
        assert not await reconciler.gone("facility", "b-worker-0") and len(steps.began) == 2
        del item["metadata"]["deletionTimestamp"]
        assert await look() == ("Stop", False)
        assert await fleet.away() == ["facility/b/worker-0"]
        # Where there is no limit any more, nothing is held.
        hub.absences.limit = 0
        fleet.there["Machine", "b-worker-1"]["metadata"]["annotations"] = {HOOK: "metal-ipi"}
        assert await look("b-worker-1") == ("Stop", False)

    _run(whole())


def test_a_machine_that_is_installed_again_as_it_stands_waits() -> None:
    async def whole() -> None:
        fleet = Fleet("a", "b")
        limit = _of(fleet, 1)
        assert await limit.in_place(fleet.works["a"], "rack-worker-0") == ""
        assert await fleet.away() == ["facility/a/worker-0"]
        fleet.there["MetalIpiMachine", "a-worker-0"]["status"]["conditions"][0].update(status="False", reason="Working")
        assert "(installed again, since" in await limit.in_place(fleet.works["b"], "rack-worker-0")

    _run(whole())


class _Nodes:
    def __init__(self, spec: Any, patience: float) -> None: ...

    async def away(self, names: Any) -> dict[str, str]:
        return {}

    async def operator(self, name: str) -> None:
        return


def test_a_machine_that_is_not_healthy_waits_for_those_of_other_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        monkeypatch.setattr(quorum, "Cluster", _Nodes)
        fleet = Fleet("a", "b")
        for number in range(3):
            member = fleet.machine("b", f"control-plane-{number}")
            member["metadata"]["labels"] = {CLUSTER_LABEL: "b", NAME_LABEL: "b"}
            member["spec"]["infrastructureRef"] = {"kind": "MetalIpiMachine", "name": member["metadata"]["name"]}
        fleet.there["OpenShiftControlPlane", "b"] = {"spec": {"replicas": 3}}
        hub = hub_of(fleet, limit=1)
        assert await fleet.take(hub.absences, "a", "worker-0") == ""
        fleet.leaves("a", "worker-0")
        # Its owner, a control plane, lets it be.
        fleet.ill("b", "control-plane-0")
        made = [f"rack-control-plane-{number}-{what}" for number in range(3) for what in ("server", "installation")]
        fleet.works["b"] = work = replace(fleet.works["b"], engine=cast(Any, Steps(FORMED, *made)))
        members = [each for each in await fleet.list(MACHINE, "") if NAME_LABEL in each["metadata"]["labels"]]
        said = await own_remediation.remediate(hub.api, hub.absences, work, members, formed=True)
        assert said["reason"] == "Deferred" and "facility/a/worker-0 (deleted" in said["message"]
        (told,) = fleet.there["Machine", "b-control-plane-0"]["status"]["told"]
        assert told["reason"] == "RemediationDeferred"
        # Nor is a server power-cycled; one that is off is switched on.
        item = {"metadata": {"name": "b-worker-0"}, "spec": {"powerCycles": 1, "timeoutSeconds": 60}}
        fleet.there["MetalIpiRemediation", "b-worker-0"] = item
        reconciler, machine = remediations.RemediationReconciler(hub), fleet.ill("b", "worker-0")

        async def cycle() -> None:
            entry: Any = None
            await reconciler._power_cycle(  # pyright: ignore[reportPrivateUsage]
                item, machine, work, work.node("worker-0"), entry, number=1, message=""
            )

        powers, begun = ["On", "Off"], list[str]()

        async def power(*_: Any) -> str:
            return powers.pop(0)

        async def plan(*_: Any) -> Any:
            return SimpleNamespace(settings=None)

        monkeypatch.setattr(joined, "power", power)
        monkeypatch.setattr(remediations, "_begin", lambda *_: begun.append("begun"))
        monkeypatch.setattr(Work, "plan", plan)
        with pytest.raises(TooManyAway):
            await cycle()
        assert "powerCycles" not in (item.get("status") or {}) and not begun
        await cycle()
        assert begun == ["begun"]
        assert await fleet.away() == ["facility/a/worker-0"]

    _run(whole())
