"""Which handlers are woken by what changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from metal_ipi.cluster_api.operator import Bells, Changes, cluster_of, declared, unknown


@pytest.mark.parametrize(
    ("kind", "metadata", "expected"),
    [
        ("Cluster", {"name": "a"}, "fleet/a"),
        ("Machine", {"name": "m", "labels": {"cluster.x-k8s.io/cluster-name": "a"}}, "fleet/a"),
        ("MetalIpiCluster", {"name": "f", "ownerReferences": [{"kind": "Cluster", "name": "a"}]}, "fleet/a"),
        ("MetalIpiCluster", {"name": "f"}, "fleet/"),
    ],
)
def test_an_object_is_of_the_cluster_that_it_names(kind: str, metadata: dict[str, Any], expected: str) -> None:
    assert cluster_of({"kind": kind, "metadata": {"namespace": "fleet", **metadata}}) == expected


async def test_what_changes_wakes_its_own_cluster_only() -> None:
    bells, woken = Bells(), list[str]()
    waiting = ["fleet/a", "fleet/a", "fleet/b", "other/a", unknown("fleet"), unknown("other")]

    async def wait(number: int, cluster: str) -> None:
        await bells.wait(cluster, 10, since=bells.rung(cluster))
        woken.append(f"{number} {cluster}")

    tasks = [asyncio.create_task(wait(number, cluster)) for number, cluster in enumerate(waiting)]
    await asyncio.sleep(0)
    bells.ring("fleet/a")
    await asyncio.wait(tasks, timeout=0.2)
    assert sorted(woken) == ["0 fleet/a", "1 fleet/a", "4 fleet/"]
    bells.ring(unknown("other"))  # an object that says of no cluster that it is its own
    await asyncio.wait(tasks, timeout=0.2)
    assert woken[3:] == ["5 other/"]
    for task in tasks:
        task.cancel()


async def test_nobody_waits_longer_than_it_may() -> None:
    await asyncio.wait_for(Bells().wait("fleet/a", 0.01, since=0), 5)


async def test_who_works_while_something_changes_looks_again_at_once() -> None:
    bells = Bells()
    since = bells.rung("fleet/a")
    bells.ring("fleet/a")
    await asyncio.wait_for(bells.wait("fleet/a", 60, since=since), 5)


def _machine(
    *, version: str = "1", server: str = "worker-0", message: str = "", status: str = "False", provisioned: bool = False
) -> dict[str, Any]:
    return {
        "metadata": {"uid": "1", "name": "m", "resourceVersion": version},
        "spec": {"server": server},
        "status": {
            "conditions": [{"type": "Ready", "status": status, "message": message}],
            "deprecated": {"v1beta1": {"conditions": [{"message": message}]}},
            "initialization": {"provisioned": provisioned},
        },
    }


def test_a_status_is_not_what_an_object_declares() -> None:
    changes = Changes(declared)
    assert changes.matters("ADDED", _machine())
    assert not changes.matters("MODIFIED", _machine(version="2", status="True", provisioned=True))
    assert changes.matters("MODIFIED", _machine(server="worker-1"))
    assert changes.matters("DELETED", _machine(server="worker-1"))


def test_messages_of_objects_wake_nobody() -> None:
    changes = Changes()
    assert changes.matters(None, _machine())
    assert not changes.matters("MODIFIED", _machine(version="2", message="7 s"))
    for other in (_machine(server="worker-1"), _machine(status="True"), _machine(provisioned=True)):
        assert changes.matters("MODIFIED", other)
        assert not changes.matters("MODIFIED", other)
    assert changes.matters("DELETED", _machine(provisioned=True))
    assert changes.matters("ADDED", _machine(provisioned=True))
