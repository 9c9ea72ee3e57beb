"""The gate that asks a hub how far Cluster API is, against an API on loopback."""

from __future__ import annotations

import asyncio
import base64
import lzma
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import GateFailed
from metal_ipi.provider.gates.cluster_api import ClusterApiAvailable
from metal_ipi.provider.resource import Context
from metal_ipi.provider.status import Status
from tests.provider.fake_cluster import FakeCluster
from tests.provider.harness import Harness, RecordedLog, Resource

pytestmark = pytest.mark.usefixtures("no_waiting")

_CLUSTER = "/apis/cluster.x-k8s.io/v1beta2/namespaces/rack7/clusters/rack7"
_CHOSEN = "?labelSelector=cluster.x-k8s.io/cluster-name%3Drack7"
_KINDS = {
    "MetalIpiCluster": "infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/rack7/metalipiclusters",
    "OpenShiftControlPlane": "controlplane.cluster.x-k8s.io/v1alpha1/namespaces/rack7/openshiftcontrolplanes",
    "MetalIpiMachine": "infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/rack7/metalipimachines",
    "OpenShiftConfig": "bootstrap.cluster.x-k8s.io/v1alpha1/namespaces/rack7/openshiftconfigs",
}
_DEPLOYMENTS = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/rack7/machinedeployments{_CHOSEN}"
_STAGES = ("InfrastructureReady", "ControlPlaneInitialized", "Available")


def _condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _hub(cluster: FakeCluster, reached: int, **objects: dict[str, str]) -> None:
    """A hub whose Cluster has come so many stages far, with objects of ours by kind, each with its main condition."""
    stages = [_condition(stage, str(number < reached), message=f"why\n{stage}") for number, stage in enumerate(_STAGES)]
    cluster.answers[_CLUSTER] = 200, {"status": {"conditions": stages}}
    cluster.answers[_DEPLOYMENTS] = 200, {"items": []}
    done = _condition("AsDeclared", "True")
    for kind, path in _KINDS.items():
        found = (
            [{"metadata": {"name": "one"}, "status": {"conditions": [objects[kind], done]}}] if kind in objects else []
        )
        cluster.answers[f"/apis/{path}{_CHOSEN}"] = 200, {"items": found}


def _check(cluster: FakeCluster, log: RecordedLog | None = None, **more: str) -> ClusterApiAvailable:
    urn = "urn:pulumi:test::metal-ipi::metal-ipi:index:Gate::available"
    about = Context(urn=urn, settings=Settings(), status=Status(log or RecordedLog(), urn))
    return ClusterApiAvailable(about, cluster.spec(namespace="rack7", cluster="rack7", **more))


async def _up(cluster: FakeCluster, timeout: float = 3) -> dict[str, Any]:
    spec = cluster.spec(namespace="rack7", cluster="rack7")
    it = Resource(Harness(), "Gate", name="cluster-available")
    return await it.up({"kind": "cluster-api-available", "spec": spec, "timeoutSeconds": timeout, "triggers": []})


async def test_it_passes_when_the_cluster_is_available(cluster: FakeCluster) -> None:
    _hub(cluster, 3)
    assert (await _up(cluster))["observed"] == "Cluster rack7 is Available"


@pytest.mark.parametrize("reached", [0, 1, 2])
async def test_it_tells_the_stage_that_is_waited_for(cluster: FakeCluster, reached: int) -> None:
    _hub(cluster, reached)
    with pytest.raises(GateFailed, match=rf"did not pass within 3 s\n  last seen: {_STAGES[reached]}: why"):
        await _up(cluster)


async def test_a_machine_that_is_waited_for_is_named_with_its_condition(cluster: FakeCluster) -> None:
    _hub(cluster, 1, MetalIpiMachine=_condition("Ready", "False", "Working", "control-plane-0 is installed"))
    with pytest.raises(GateFailed, match=r"MetalIpiMachine one: Working: control-plane-0 is installed"):
        await _up(cluster)


@pytest.mark.parametrize("reached", [0, 3])
@pytest.mark.parametrize(("kind", "reason"), [("Ready", "SettingsRefused"), ("ScalingUp", "ScalingRefused")])
async def test_what_waiting_does_not_mend_ends_the_wait(
    cluster: FakeCluster, kind: str, reason: str, reached: int
) -> None:
    _hub(cluster, reached, MetalIpiMachine=_condition(kind, "False", reason, "it is another's"))
    check = _check(cluster)
    early = await check.look(0.0)
    assert (early.passed, early.fatal) == (False, None), "it may be of what was there before"
    assert (await check.look(11.0)).fatal == f"MetalIpiMachine one: {reason}: it is another's"


@pytest.mark.parametrize("reason", ["Failing", "StepFailed"])
async def test_a_step_that_goes_on_failing_ends_the_wait_after_a_minute(cluster: FakeCluster, reason: str) -> None:
    _hub(cluster, 0, OpenShiftControlPlane=_condition("Available", "False", reason, "no such installer"))
    check = _check(cluster)
    early = await check.look(0.0)
    assert early.fatal is None
    assert "no such installer" in early.text
    assert (await check.look(59.0)).fatal is None
    assert "no such installer (it has failed for 60 s" in str((await check.look(61.0)).fatal)
    _hub(cluster, 0)
    assert (await check.look(62.0)).fatal is None


async def test_a_step_that_fails_is_told_once_and_with_what_the_providers_gathered(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    _hub(cluster, 1, MetalIpiMachine=_condition("Ready", "False", "Failing", "the BMC refuses the password"))
    packed = base64.b64encode(lzma.compress(b"login:")).decode()
    secret = "/api/v1/namespaces/rack7/secrets/rack7-logs"
    cluster.answers[secret] = 200, {"data": {"../bootstrap.node.console.log": packed}}
    log = RecordedLog()
    check = _check(cluster, log, logDirectory=str(tmp_path))
    for elapsed in (0.0, 1.0):
        assert (await check.look(elapsed)).fatal is None
    told = "MetalIpiMachine one: Failing: the BMC refuses the password"
    assert log.messages == [f"{told}\n  logs: {tmp_path / 'available'}"]
    assert (tmp_path / "available" / "bootstrap.node.console.log").read_text() == "login:"
    cluster.answers[secret] = 403, {}
    assert "logs that could not be read: HTTP 403" in str((await check.look(61.0)).fatal)


async def test_an_object_that_nobody_looked_at_is_told(cluster: FakeCluster) -> None:
    _hub(cluster, 0, MetalIpiCluster=_condition("Other", "True"))
    assert "MetalIpiCluster one: our providers have not processed it yet" in (await _check(cluster).look(0.0)).text


async def test_a_cluster_passes_when_nothing_of_it_is_left_to_be_done(cluster: FakeCluster) -> None:
    _hub(cluster, 3, OpenShiftControlPlane=_condition("Available", "True"))
    assert (await _check(cluster).look(0.0)).passed
    (item,) = cluster.answers[f"/apis/{_KINDS['OpenShiftControlPlane']}{_CHOSEN}"][1]["items"]
    item["status"]["conditions"][1] = _condition("AsDeclared", "False", "NotYet", "not done: worker-checks-0")
    seen = await _check(cluster).look(0.0)
    assert (seen.passed, seen.text) == (False, "OpenShiftControlPlane one: AsDeclared: not done: worker-checks-0")


async def test_a_cluster_that_stands_passes_when_its_change_was_looked_at(cluster: FakeCluster) -> None:
    check = _check(cluster)
    _hub(cluster, 3, MetalIpiCluster=_condition("Ready", "True"))
    (item,) = cluster.answers[f"/apis/{_KINDS['MetalIpiCluster']}{_CHOSEN}"][1]["items"]
    item["metadata"]["generation"] = 2
    item["status"]["conditions"][0]["observedGeneration"] = 1
    assert "MetalIpiCluster one was changed" in (await check.look(0.0)).text
    item["status"]["conditions"][0]["observedGeneration"] = 2
    assert (await check.look(1.0)).passed


async def test_a_cluster_that_stands_passes_when_it_has_all_workers(cluster: FakeCluster) -> None:
    check = _check(cluster)
    _hub(cluster, 3)
    status = {"observedGeneration": 2, "replicas": 3, "upToDateReplicas": 3, "availableReplicas": 2}
    deployment = {"metadata": {"name": "w", "generation": 2}, "spec": {"replicas": 3}, "status": status}
    cluster.answers[_DEPLOYMENTS] = 200, {"items": [deployment]}
    assert "w: 3 machines are wanted; it has 3, of which 3 are up to date and 2" in (await check.look(0.0)).text
    status.update(availableReplicas=3, observedGeneration=1)
    assert not (await check.look(1.0)).passed
    status.update(observedGeneration=2)
    assert (await check.look(2.0)).passed


async def test_connections_to_a_hub_are_used_again_and_closed_at_the_end(cluster: FakeCluster) -> None:
    cluster.keeps = True
    _hub(cluster, 1)
    async with aclosing(_check(cluster)) as check:
        for elapsed in range(3):
            assert not (await check.look(float(elapsed))).passed
        assert cluster.looks == 18 and cluster.connections == 6, "one for each of the questions that are asked at once"
        assert len(cluster.serving) == 6
    _hub(cluster, 3)
    await _up(cluster)
    await asyncio.gather(*cluster.serving)


async def test_a_hub_that_closes_its_connections_is_asked_again(cluster: FakeCluster) -> None:
    check = _check(cluster)
    _hub(cluster, 3)
    for elapsed in range(3):
        assert (await check.look(float(elapsed))).passed
    assert cluster.connections == 18


async def test_a_hub_that_has_no_such_cluster(cluster: FakeCluster) -> None:
    cluster.answers[_CLUSTER] = 404, {}
    with pytest.raises(GateFailed, match="it has no Cluster rack7"):
        await _up(cluster)


async def test_names_are_checked_before_anybody_is_asked(cluster: FakeCluster) -> None:
    it = Resource(Harness(), "Gate", name="cluster-available")
    spec: dict[str, Any] = cluster.spec(namespace="../default", cluster="Rack 7")
    problems = await it.check({"kind": "cluster-api-available", "spec": spec, "timeoutSeconds": 3, "triggers": []})
    assert sorted(each.split()[0] for each in problems) == ["spec.cluster", "spec.namespace"]
