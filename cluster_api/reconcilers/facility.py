"""MetalIpiCluster: the cluster's keys, and the checks before anything is done to a server."""

from __future__ import annotations

import time
from collections.abc import Callable

from metal_ipi.cluster_api import conditions, domains
from metal_ipi.cluster_api.api import Object, status_of
from metal_ipi.cluster_api.clusters import ANSWERS, NotUsable, Work, refuse_domains
from metal_ipi.cluster_api.installations import INSTALLING, TOO_MANY
from metal_ipi.cluster_api.reconcilers.base import (
    LATER,
    RARELY,
    Hub,
    Reconciler,
    Said,
    doing,
    reason_of,
    refuse_while_it_stays,
)
from metal_ipi.cluster_api.resources import METAL_IPI_CLUSTER
from metal_ipi.cluster_api.store import SecretStore, take_along

API_PORT = 6443


class FacilityReconciler(Reconciler):
    """Provisioned once the address of the API answers, on the bootstrap machine first; gone once nothing of the cluster
    is left.

    Cluster API connects to a cluster when its infrastructure is provisioned, and after a failure not again for 30 s
    (controllers/clustercache of v1.12.2)."""

    resource = METAL_IPI_CLUSTER.resource
    referred = "infrastructureRef"

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub)
        self._theirs: dict[tuple[str, str], float] = {}
        """Until when both Secrets of a MetalIpiCluster are known to be its own, by its uid and the name of that of the
        settings, on the monotonic clock."""

    async def _reconcile(self, item: Object, work: Work) -> Said:
        assert work.servers, "a platform without servers is refused"
        refuse_domains(item, work.servers)
        await self._own(item, work)
        plan = await work.plan(self._hub.reads)
        work.engine.advance(plan, lambda step: work.of_cluster(step.name))
        waiting = [step.name for step in plan.waiting(work.of_cluster)]
        endpoint = item["spec"].get("controlPlaneEndpoint") or {}
        default = {"host": f"api.{work.settings.domain}", "port": API_PORT}
        said = Said(spec={} if endpoint.get("host") else {"controlPlaneEndpoint": default})
        said.status["failureDomains"] = [
            {"name": name, "controlPlane": any(work.servers[each].role == "control-plane" for each in servers)}
            for name, servers in domains.of(item).items()
        ]
        # Once true, both stay true; the contract does not allow `provisioned` to change back.
        if checked := not waiting or work.checked:
            said.conditions.append(conditions.condition(conditions.PREFLIGHT_PASSED, True, "Passed"))
        answers = checked and (await work.engine.state()).named(ANSWERS) is not None
        if answers or work.provisioned:
            said.status["initialization"] = {"provisioned": True}
        if waiting:
            message = doing(work, work.of_cluster) or f"not begun: {', '.join(waiting)}"
            return said.ready(False, reason_of(work, work.of_cluster, "Waiting"), message)
        if self._hub.installations.limit or status_of(item, INSTALLING):
            failing = reason_of(work, self._mine(item, work), "") == conditions.STEP_FAILED
            place = await self._hub.installations.look(work, failing=failing)
            said.conditions.append(place)
            if place["reason"] == TOO_MANY:
                return said.ready(False, TOO_MANY, place["message"], again=LATER)
        if not answers and not work.provisioned:
            return said.ready(False, "WaitingForApi", f"https://{default['host']}:{API_PORT} has not answered yet")
        return said.ready(True, "Provisioned")

    async def _own(self, item: Object, work: Work) -> None:
        """Own both Secrets: that of the settings, which has no owner yet, and an install state that was made
        elsewhere; looked after again after RARELY seconds."""
        name, now = str((item["spec"].get("secretsRef") or {}).get("name") or ""), time.monotonic()
        if self._theirs.get((uid := item["metadata"]["uid"], name), now) > now:
            return
        self._theirs = {each: until for each, until in self._theirs.items() if until > now}
        if name:
            await take_along(self._hub.api, work.namespace, name)
        if await work.store.own():
            self._theirs[uid, name] = now + RARELY

    def _mine(self, item: Object, work: Work) -> Callable[[str], bool]:
        return lambda name: True

    def _steps(self, item: Object, work: Work) -> Callable[[str], bool]:
        return work.of_cluster

    async def _stranger_gone(self, item: Object, cluster: Object) -> bool:
        name = str(cluster["metadata"]["name"])
        if await SecretStore(self._hub.api, item, name).is_owned():  # Kubernetes takes it away with its owner
            raise NotUsable(
                "NotReferred",
                f"it owns the install state of Cluster {name}: let spec.{self.referred} refer to it again",
            )
        return True

    async def _gone(self, item: Object, work: Work) -> bool:
        refuse_while_it_stays(work)
        await work.engine.stop()
        left = (await work.engine.state()).entries
        if left and not work.engine.remove(left, await work.connections(), given_up=False):
            return False
        await work.store.delete()
        await self._hub.clusters.close(item)
        return True
