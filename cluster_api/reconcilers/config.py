"""OpenShiftConfig: the Secret that tells a machine where its configuration is, as the installer writes it."""

from __future__ import annotations

from metal_ipi.cluster_api.api import Object, labels_of
from metal_ipi.cluster_api.clusters import ASSETS, Work
from metal_ipi.cluster_api.reconcilers.base import CALLED, RARELY, SOON, Reconciler, Said
from metal_ipi.cluster_api.resources import OPENSHIFT_CONFIG
from metal_ipi.cluster_api.store import secret_value
from metal_ipi.components.install.assets import parse, stub
from metal_ipi.components.machines.node import POOLS, Role

CONTROL_PLANE_LABEL = "cluster.x-k8s.io/control-plane"


class ConfigReconciler(Reconciler):
    """Ready once its Secret is there."""

    resource = OPENSHIFT_CONFIG.resource

    async def _reconcile(self, item: Object, work: Work) -> Said:
        machine = await self._machine(item, work)
        assets = (await work.engine.state()).named(ASSETS)
        if assets is None:
            why = "the installer has not run yet: the conditions of its control plane say why"
            return Said().ready(False, "WaitingForAssets", why, again=CALLED if self._held(work) else SOON)
        role: Role = "control-plane" if CONTROL_PLANE_LABEL in labels_of(machine) else "worker"
        pointer = stub(parse(assets.outputs["stdout"]), POOLS[role])
        name = item["metadata"]["name"]
        await self._apply(work.namespace, name, secret_value(work.name, item, pointer))
        said = Said(status={"initialization": {"dataSecretCreated": True}, "dataSecretName": name})
        said.again = RARELY
        return said.ready(True, "Created")

    async def _gone(self, item: Object, work: Work) -> bool:
        return True  # its Secret goes with it
