"""How many clusters of a hub may be installed at once.

A cluster is being installed from the moment at which its preflight has passed and it got a place, until the last gate
of its installation has passed. Its MetalIpiCluster says so in its condition Installing, by which a process that takes
over counts. What has begun goes on, whatever the limit is now. A cluster of which a step keeps failing goes on as well,
but does not count: else a few that people have to mend would hold up all others.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from metal_ipi.cluster_api.api import Api, Object, status_of, uid_of
from metal_ipi.cluster_api.clusters import COMPLETE, Clusters, Work, leaving
from metal_ipi.cluster_api.conditions import STEP_FAILED, condition
from metal_ipi.cluster_api.engine.state import name_of
from metal_ipi.cluster_api.resources import METAL_IPI_CLUSTER

INSTALLING = "Installing"
"""The condition, and its reason while the cluster counts."""
INSTALLED, TOO_MANY = "Installed", "TooManyInstalling"
"""Its other reasons, beside STEP_FAILED."""
_FRESH = 2.0
"""Seconds for which the last reading of the hub is used again, because many clusters may wait and ask."""
_logger = logging.getLogger(__name__)


class Installations:
    """The clusters that are being installed. Only the leading process may call `look`."""

    def __init__(self, api: Api, clusters: Clusters, limit: int, *, fresh: float = _FRESH) -> None:
        """With `limit` 0 there is none, and only conditions that there are already change."""
        self._api, self._clusters, self.limit, self._fresh = api, clusters, limit, fresh
        # Without names, which change: every message is repeated by Cluster API, and all that wait would change at once.
        self._why = (
            f"it waits until it may be installed: {limit} clusters of this hub are being installed, as many as may be "
            "at once (--max-installing): kubectl get metalipiclusters --all-namespaces"
        )
        self._deciding = asyncio.Lock()
        self._counts: dict[str, bool] = {}
        """Whether each cluster counts that this process let begin or found installed, by its MetalIpiCluster's uid."""
        self._waiting: dict[str, str] = {}
        """The clusters that wait, `namespace/name` by the same, in the order in which they asked first."""
        self._say = set[str]()
        """Those of which the hub's objects say that they count."""
        self._until = 0.0
        """Until when that is fresh, on the monotonic clock."""

    @property
    def count(self) -> int:
        """How many clusters count that this process has looked at."""
        return sum(self._counts.values())

    @property
    def waiting(self) -> int:
        """How many clusters wait."""
        return len(self._waiting)

    def begun(self, work: Work) -> bool:
        """Whether a cluster's installation may go on."""
        says = status_of(work.facility, INSTALLING) == ("True",)
        return not self.limit or work.provisioned or says or uid_of(work.facility) in self._counts

    async def look(self, work: Work, *, failing: bool) -> dict[str, Any]:
        """The condition of a cluster whose preflight has passed; it is False with the reason TOO_MANY where the cluster
        has to wait. `failing`: whether one of its steps keeps failing. Raises ApiError."""
        uid, state = uid_of(work.facility), await work.engine.state()
        async with self._deciding:
            if state.named(COMPLETE) is not None:
                self._set(uid, counts=False)
                return condition(INSTALLING, False, INSTALLED)
            underway = self.begun(work) or any(not work.of_cluster(name_of(urn)) for urn in state.entries)
            if not underway and await self._number() >= self.limit:
                self._waiting.setdefault(uid, f"{work.namespace}/{work.name}")
                return condition(INSTALLING, False, TOO_MANY, self._why)
            self._set(uid, counts=not failing)
        return condition(INSTALLING, True, STEP_FAILED if failing else INSTALLING)

    def _set(self, uid: str, *, counts: bool) -> None:
        """Record whether a cluster counts; wake the one that has waited longest where a place became free."""
        before, self._counts[uid] = self._counts.get(uid), counts
        waited = self._waiting.pop(uid, None)
        if before != counts:
            _logger.info("%d clusters are being installed, %d wait (--max-installing)", self.count, self.waiting)
        if waited is None and before and not counts and self._waiting:
            self._clusters.ring(next(iter(self._waiting.values())), "")

    async def _number(self) -> int:
        """How many clusters of the hub count."""
        if time.monotonic() >= self._until:
            items = await self._api.list(METAL_IPI_CLUSTER.resource, "")
            self._until = time.monotonic() + self._fresh
            there = {uid_of(each): each for each in items if not leaving(each)}
            self._counts = {uid: so for uid, so in self._counts.items() if uid in there}
            self._waiting = {uid: name for uid, name in self._waiting.items() if uid in there}
            self._say = {uid for uid, each in there.items() if _says(each)}
        return self.count + len(self._say - self._counts.keys())


def _says(facility: Object) -> bool:
    return status_of(facility, INSTALLING, ("status", "reason")) == ("True", INSTALLING)
