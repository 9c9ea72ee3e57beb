"""Machines that are not healthy: power cycles, their owner, and the quorum of a control plane."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from metal_ipi.cluster_api.api import Object, Resource
from metal_ipi.cluster_api.clusters import FORMED, Work
from metal_ipi.cluster_api.reconcilers import joined, own_remediation, quorum
from metal_ipi.cluster_api.reconcilers.own_remediation import chosen, obstacle
from metal_ipi.cluster_api.reconcilers.remediation import Next, RemediationReconciler, decide
from metal_ipi.cluster_api.resources.remediation import RemediationSpec
from metal_ipi.cluster_api.store import CLUSTER_LABEL
from tests.cluster_api.test_going import Objects, Steps, hub_of, work_of

_LABELS = {CLUSTER_LABEL: "rack"}


@pytest.mark.parametrize(
    ("cycles", "begun", "seconds", "installed", "expected"),
    [
        (1, 0, 0, True, "power-cycle"),
        (2, 1, 59, True, "wait"),
        (2, 1, 60, True, "power-cycle"),
        (2, 2, 60, True, "hand-over"),
        (0, 0, 0, True, "hand-over"),
        # What is being installed is given its time, and is never power-cycled.
        (1, 0, 59, False, "wait"),
        (1, 0, 60, False, "hand-over"),
    ],
)
def test_what_comes_next(cycles: int, begun: int, seconds: float, installed: bool, expected: Next) -> None:
    spec = RemediationSpec(power_cycles=cycles, timeout_seconds=60)
    assert decide(spec, begun=begun, seconds=seconds, installed=installed) == expected


def _machine(name: str, *, healthy: bool = True, node: bool = True, owner: bool = True, **metadata: Any) -> Object:
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [{"type": "HealthCheckSucceeded", "status": str(healthy), **since}]
    if not healthy and owner:
        conditions.append({"type": "OwnerRemediated", "status": "False", **since})
    status = {"conditions": conditions, **({"nodeRef": {"name": name}} if node else {})}
    spec = {"infrastructureRef": {"kind": "MetalIpiMachine", "name": name}}
    return {"metadata": {"name": name, "namespace": "facility", **metadata}, "spec": spec, "status": status}


def test_one_machine_is_chosen() -> None:
    ill = [_machine("b", healthy=False, creationTimestamp="2"), _machine("a", healthy=False, creationTimestamp="1")]
    externally = _machine("e", healthy=False, owner=False)
    assert (chosen([*ill, externally, _machine("w")]) or {})["metadata"]["name"] == "a"
    assert (chosen([*ill, _machine("n", healthy=False, node=False)]) or {})["metadata"]["name"] == "n"
    marked = _machine("m", healthy=False, annotations={"cluster.x-k8s.io/remediate-machine": ""})
    assert (chosen([*ill, marked]) or {})["metadata"]["name"] == "m"
    assert chosen([externally, _machine("w")]) is None


@pytest.mark.parametrize(
    ("others", "formed", "expected"),
    [
        ([_machine("w")], False, ("RemediationDeferred", "not formed")),
        ([], True, ("CannotBeRemediated", "only machine")),
        ([_machine("w", deletionTimestamp="now")], True, ("RemediationDeferred", "w is being deleted")),
        ([_machine("w", node=False)], True, ("RemediationDeferred", "w is being provisioned")),
        ([_machine("w", node=False, healthy=False)], True, None),
    ],
)
def test_what_keeps_a_machine_from_being_made_anew(
    others: list[Object], formed: bool, expected: tuple[str, str] | None
) -> None:
    ill = _machine("ill", healthy=False)
    found = obstacle(ill, [ill, *others], formed=formed)
    if expected is None:
        assert found is None
    else:
        assert found is not None and found[0] == expected[0] and expected[1] in found[1]


class Told(Objects):
    """Objects that remember what was applied to them."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[tuple[str, str, str]] = []

    async def apply(
        self,
        kind: Resource,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        subresource: str = "",
        *,
        manager: str = "",
    ) -> None:
        # What Machines are told has a manager of its own: else UpToDate would be taken out.
        assert (kind.kind, subresource, manager) == ("Machine", "status", "metal-ipi-cluster-api-remediation")
        self.applied += [(name, each["type"], each["reason"]) for each in body["status"]["conditions"]]

    async def patch(self, kind: Resource, namespace: str, name: str, body: Object, subresource: str = "") -> None:
        for key, value in body.items():
            self.there[kind.kind, name].setdefault(key, {}).update(value)


class Acting(Steps):
    """An engine that also plans, and of which nothing fails."""

    async def look(self, declaration: Any) -> Any:
        return SimpleNamespace(settings=None)

    def failures(self, mine: Any) -> list[Any]:
        return []

    def running(self, mine: Any) -> dict[str, str]:
        return {}


def _ready(monkeypatch: pytest.MonkeyPatch, away: Mapping[str, str] | None = None) -> None:
    class Nodes:
        def __init__(self, spec: Any, patience: float) -> None: ...

        async def away(self, names: Any) -> dict[str, str]:
            return {name: why for name, why in (away or {}).items() if name in names}

        async def operator(self, name: str) -> None:
            return

    monkeypatch.setattr(quorum, "Cluster", Nodes)


def _control_plane(objects: Told) -> tuple[Work, Steps]:
    made = [f"rack-control-plane-{number}-{what}" for number in range(3) for what in ("server", "installation")]
    steps = Acting(FORMED, *made)
    for number in range(3):
        name = f"cp-{number}"
        machine = _machine(name, healthy=number != 0)
        machine["metadata"]["labels"] = _LABELS
        objects.there["Machine", name] = machine
        owners = [{"kind": "Machine", "name": name}]
        objects.there["MetalIpiMachine", name] = {
            "metadata": {"name": name, "labels": _LABELS, "ownerReferences": owners},
            "spec": {"server": f"control-plane-{number}"},
        }
    return work_of(steps), steps


@pytest.mark.parametrize("away", [None, {"rack-control-plane-1.rack.example.com": "is not Ready"}])
def test_a_control_plane_has_one_machine_made_anew_if_etcd_can_spare_it(
    away: Mapping[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whole() -> None:
        objects = Told()
        work, _ = _control_plane(objects)
        _ready(monkeypatch, {work.node("control-plane-1").fqdn: "is not Ready"} if away else None)
        machines = await objects.list(cast(Any, Resource(group="", version="", kind="Machine", plural="")), "")
        hub = hub_of(objects)
        said = await own_remediation.remediate(hub.api, hub.absences, work, machines, formed=True)
        assert said["status"] == "True" and said["message"].startswith("cp-0: ")
        if away:
            assert ("Machine", "cp-0") in objects.there
            assert objects.applied == [("cp-0", "OwnerRemediated", "CannotBeRemediated")] and "etcd" in said["message"]
            assert said["reason"] == "Refused"
        else:
            assert ("Machine", "cp-0") not in objects.there

    asyncio.run(whole())


def test_a_machine_that_is_healthy_again_is_not_made_anew_the_next_time() -> None:
    """A MachineHealthCheck does not take back what it asked of an owner."""
    again = _machine("again", healthy=False)
    again["status"]["conditions"][0]["status"] = "True"
    gone = {**again, "metadata": {**again["metadata"], "deletionTimestamp": "now"}}
    objects = Told()
    work, _ = _control_plane(objects)
    hub = hub_of(objects)
    said = asyncio.run(own_remediation.remediate(hub.api, hub.absences, work, [again, gone], formed=True))
    assert said["reason"] == "NotRemediating"
    assert objects.applied == [("again", "OwnerRemediated", "Healthy")]


def test_of_a_control_plane_one_machine_is_power_cycled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        objects = Told()
        _ready(monkeypatch)
        work, steps = _control_plane(objects)
        monkeypatch.setattr(joined, "power", _on)
        reconciler = RemediationReconciler(hub := hub_of(objects))
        claims = hub.claims
        for number in (0, 1):
            name = f"cp-{number}"
            objects.there["MetalIpiRemediation", name] = {
                "metadata": {
                    "name": name,
                    "labels": _LABELS,
                    "ownerReferences": [{"kind": "Machine", "name": name}],
                    "creationTimestamp": _ago(1),
                },
                "spec": {"powerCycles": 1, "timeoutSeconds": 60},
            }
        del objects.there["Machine", "cp-0"]["status"]["conditions"][1]  # its owner has not been told yet
        objects.there["Machine", "cp-1"]["status"]["conditions"][0]["status"] = "False"
        for number in (0, 1):
            await claims.claim(work.servers[f"control-plane-{number}"].mac, f"facility/cp-{number}")
        first, second = (objects.there["MetalIpiRemediation", f"cp-{number}"] for number in (0, 1))
        said = await reconciler._reconcile(first, work)  # pyright: ignore[reportPrivateUsage]
        assert first["status"]["powerCycles"] == 1 and steps.began == ["rack-control-plane-0-power cycle"]
        assert said.conditions[0]["reason"] == "PowerCycling"
        with pytest.raises(Exception, match=r"control-plane-0\S* \(its machine was power-cycled just now\)"):
            await reconciler._reconcile(second, work)  # pyright: ignore[reportPrivateUsage]
        # Where that did not help, its owner is told, who makes it anew.
        first["status"]["lastPowerCycle"] = _ago(61)
        await reconciler._reconcile(first, work)  # pyright: ignore[reportPrivateUsage]
        assert objects.applied[-2:] == [
            ("cp-0", "ExternallyRemediated", "HandedOver"),
            ("cp-0", "OwnerRemediated", "WaitingForRemediation"),
        ]
        # A server that is another machine's is not touched.
        await claims.give_back("facility/cp-0")
        first["spec"], first["metadata"]["creationTimestamp"] = {"powerCycles": 2}, _ago(1)
        waits = await reconciler._reconcile(first, work)  # pyright: ignore[reportPrivateUsage]
        assert waits.conditions[0]["reason"] == "PowerCycled"
        assert steps.began == ["rack-control-plane-0-power cycle"]

    asyncio.run(whole())


def test_a_machine_is_told_that_it_was_remediated_also_where_it_is_healthy_a_moment_later() -> None:
    async def whole() -> None:
        objects = Told()
        work, _ = _control_plane(objects)
        reconciler = RemediationReconciler(hub_of(objects))

        async def gone(seconds: float) -> bool:
            item = {"metadata": {"name": "cp-0", "deletionTimestamp": _ago(seconds)}}
            return await reconciler._gone(item, work)  # pyright: ignore[reportPrivateUsage]

        assert not await gone(1) and not objects.applied
        assert await gone(60) and not objects.applied  # not by the MachineHealthCheck
        objects.there["Machine", "cp-0"]["status"]["conditions"][0]["status"] = "True"
        assert await gone(1) and objects.applied == [("cp-0", "ExternallyRemediated", "Remediated")]

    asyncio.run(whole())


async def _on(work: Work, node: Any, settings: Any) -> str:
    return "On"


def _ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
