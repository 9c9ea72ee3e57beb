"""How many clusters of a hub may be installed at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from metal_ipi.cluster_api.api import Api, Object, Resource
from metal_ipi.cluster_api.clusters import COMPLETE, KEYS, Clusters, Work
from metal_ipi.cluster_api.conditions import written
from metal_ipi.cluster_api.installations import Installations
from tests.cluster_api.test_going import Objects, Steps, work_of

_BEGUN = "dns-records"


class Fleet(Objects):
    """Clusters of a hub, by name, each with what is done of it."""

    def __init__(self, **clusters: Sequence[str]) -> None:
        super().__init__()
        self.works: dict[str, Work] = {}
        self.rung: list[str] = []
        for name, done in clusters.items():
            self.add(name, *done)

    async def list(self, kind: Resource, namespace: str, labels: str = "") -> list[Object]:
        assert namespace == "", "all clusters of the hub"
        return [item for (of, _), item in self.there.items() if of == kind.kind]

    def add(self, name: str, *steps: str) -> None:
        """One more cluster."""
        metadata = {"name": name, "namespace": "facility", "uid": name}
        self.there["MetalIpiCluster", name] = {"metadata": metadata}
        self.done(name, *steps)

    def done(self, name: str, *steps: str) -> None:
        """These steps of a cluster are done."""
        cluster = {"metadata": {"name": name, "namespace": "facility"}, "spec": {}}
        facility = self.there["MetalIpiCluster", name]
        self.works[name] = replace(work_of(Steps(*steps)), cluster=cluster, facility=facility)

    def limit(self, limit: int, *, fresh: float = 0.0) -> Installations:
        """A process that leads, and by default asks the hub anew each time."""
        clusters = Clusters(cast(Api, self), ring=lambda cluster, step: self.rung.append(cluster))
        return Installations(cast(Api, self), clusters, limit, fresh=fresh)

    def looks(self, limit: Installations, *names: str, failing: bool = False) -> list[str]:
        """The reason of each cluster's condition, which is on the hub afterwards."""
        return [self._look(limit, name, failing=failing)["reason"] for name in names]

    def _look(self, limit: Installations, name: str, *, failing: bool) -> dict[str, Any]:
        said = asyncio.run(limit.look(self.works[name], failing=failing))
        item = self.there["MetalIpiCluster", name]
        item["status"] = {"conditions": written(item, [said])}
        assert limit.begun(self.works[name]) == (said["reason"] != "TooManyInstalling")
        return said


def test_some_are_installed_and_the_others_wait_until_one_is_done() -> None:
    fleet = Fleet(a=(KEYS,), b=(KEYS,), c=(KEYS,), d=(KEYS,))
    limit = fleet.limit(2)
    assert fleet.looks(limit, "a", "b", "c", "d", "a") == [
        *("Installing", "Installing", "TooManyInstalling", "TooManyInstalling", "Installing")
    ]
    assert (limit.count, limit.waiting) == (2, 2)
    said = fleet.there["MetalIpiCluster", "c"]["status"]["conditions"][0]["message"]
    assert "2 clusters of this hub are being installed, as many as may be at once (--max-installing)" in said
    assert fleet.rung == []
    fleet.done("b", KEYS, _BEGUN, COMPLETE)
    assert fleet.looks(limit, "b") == ["Installed"] and fleet.rung == ["facility/c"], "which asked before d"
    assert fleet.looks(limit, "b", "c", "d") == ["Installed", "Installing", "TooManyInstalling"]
    assert (limit.count, limit.waiting) == (2, 1) and len(fleet.rung) == 1


def test_two_that_ask_at_once_do_not_get_the_same_place() -> None:
    fleet = Fleet(a=(KEYS,), b=(KEYS,))
    limit = fleet.limit(1)

    async def both() -> list[str]:
        asked = (limit.look(work, failing=False) for work in fleet.works.values())
        return [each["reason"] for each in await asyncio.gather(*asked)]

    assert sorted(asyncio.run(both())) == ["Installing", "TooManyInstalling"]


def test_one_that_is_newer_than_the_last_reading_counts() -> None:
    fleet = Fleet(a=(KEYS,))
    limit = fleet.limit(2, fresh=60.0)
    assert fleet.looks(limit, "a") == ["Installing"]
    for name in "bc":
        fleet.add(name, KEYS)
    assert fleet.looks(limit, "b", "c") == ["Installing", "TooManyInstalling"]


def test_another_process_counts_what_the_objects_say_and_lets_go_on_what_has_begun() -> None:
    fleet = Fleet(a=(KEYS,), b=(KEYS,), c=(KEYS, _BEGUN))
    assert fleet.looks(fleet.limit(2), "a") == ["Installing"]
    assert fleet.looks(fleet.limit(1), "b") == ["TooManyInstalling"], "a is being installed"
    assert fleet.looks(fleet.limit(1), "c", "a", "b") == ["Installing", "Installing", "TooManyInstalling"]


def test_one_that_keeps_failing_goes_on_and_holds_nobody_up() -> None:
    fleet = Fleet(a=(KEYS,), b=(KEYS,), c=(KEYS,))
    limit = fleet.limit(1)
    assert fleet.looks(limit, "a", "b") == ["Installing", "TooManyInstalling"]
    assert fleet.looks(limit, "a", failing=True) == ["StepFailed"] and fleet.rung == ["facility/b"]
    assert fleet.looks(fleet.limit(1), "b") == ["Installing"], "for other processes it does not count, either"
    assert fleet.looks(limit, "b", "c") == ["Installing", "TooManyInstalling"]
    assert fleet.looks(limit, "a") == ["Installing"] and limit.count == 2, "somebody mended it"


def test_one_that_goes_frees_its_place() -> None:
    fleet = Fleet(a=(KEYS,), b=(KEYS,), c=(KEYS,))
    limit = fleet.limit(1)
    assert fleet.looks(limit, "a", "b", "c") == ["Installing", "TooManyInstalling", "TooManyInstalling"]
    fleet.there["MetalIpiCluster", "a"]["metadata"]["deletionTimestamp"] = "now"
    assert fleet.looks(limit, "b") == ["Installing"]
    del fleet.there["MetalIpiCluster", "a"], fleet.there["MetalIpiCluster", "b"]
    assert fleet.looks(limit, "c") == ["Installing"] and (limit.count, limit.waiting) == (1, 0)


def test_a_cluster_that_answers_is_not_held_by_a_process_that_has_not_looked_at_it_yet() -> None:
    fleet = Fleet(a=(KEYS, _BEGUN))
    assert not fleet.limit(1).begun(fleet.works["a"])
    fleet.there["MetalIpiCluster", "a"]["status"] = {"initialization": {"provisioned": True}}
    assert fleet.limit(1).begun(fleet.works["a"])


def test_without_a_limit_nothing_waits() -> None:
    fleet = Fleet(a=(KEYS,))
    assert fleet.limit(0).begun(fleet.works["a"])
