"""OpenShiftControlPlane: the installer's assets, the bootstrap machine, the control plane's machines, and the gates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metal_ipi.cluster_api import conditions, domains
from metal_ipi.cluster_api.api import MACHINE, Object, status_of
from metal_ipi.cluster_api.clusters import ASSETS, COMPLETE, FORMED, NotUsable, Work, leaving
from metal_ipi.cluster_api.engine.plan import Plan
from metal_ipi.cluster_api.engine.state import name_of
from metal_ipi.cluster_api.reconcilers import own_remediation
from metal_ipi.cluster_api.reconcilers.base import (
    CALLED,
    HELD,
    SOON,
    Reconciler,
    Said,
    doing,
    reason_of,
    refuse_while_it_stays,
)
from metal_ipi.cluster_api.reconcilers.config import CONTROL_PLANE_LABEL
from metal_ipi.cluster_api.resources import METAL_IPI_MACHINE, OPENSHIFT_CONFIG, OPENSHIFT_CONTROL_PLANE
from metal_ipi.cluster_api.store import CLUSTER_LABEL, NAME_LABEL, owned_by, secret_value, take_along
from metal_ipi.components.cluster_api.objects import outputs_secret
from metal_ipi.components.install.assets import parse

REMOVAL = "bootstrap-removal-removed"
AS_DECLARED = "AsDeclared"
"""The condition that all steps of the cluster are done: machines, checks of nodes, gates."""
_WAITING = "Waiting"
"""The reason while no step of the control plane runs or has failed."""
_FROM = "cluster.x-k8s.io/cloned-from-name", "cluster.x-k8s.io/cloned-from-groupkind"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How to reach the wanted number of machines."""

    missing: tuple[str, ...] = ()
    """The names of the machines to be made now."""
    refused: str = ""
    """Why the wanted number is not possible."""


def scale(
    name: str, *, wanted: int, listed: int, machines: Mapping[str, bool], formed: bool, going: Sequence[str] = ()
) -> Scale:
    """Decide which machines to create.

    Args:
        name: the control plane's.
        listed: how many servers the settings list for it.
        machines: those that there are, and whether the node of each is Ready; without those that are being deleted.
        formed: whether there is a cluster: then machines join one by one.
        going: the names of those that are being deleted, which no other has as long as they are there.
    """
    if wanted != listed:
        return Scale(
            refused=f"spec.replicas is {wanted}, and settings.platform.servers of the MetalIpiCluster lists {listed} "
            "control plane servers: both must be the same (the installer needs the number, and these are etcd's "
            "members)"
        )
    if len(machines) > wanted:
        return Scale(
            refused=f"there are {len(machines)} machines and {wanted} are wanted: a control plane cannot shrink, "
            "because members are not removed from etcd"
        )
    free = (f"{name}-{number}" for number in range(wanted + len(machines) + len(going)))
    missing = [each for each in free if each not in machines and each not in going][: wanted - len(machines)]
    if formed and missing:
        missing = missing[:1] if all(machines.values()) else []
    return Scale(missing=tuple(missing))


class ControlPlaneReconciler(Reconciler):
    """Initialized once the cluster was formed; Available as long as its API is the control plane's own."""

    resource = OPENSHIFT_CONTROL_PLANE.resource
    main = conditions.AVAILABLE
    referred = "controlPlaneRef"

    async def _reconcile(self, item: Object, work: Work) -> Said:
        said = Said(main=self.main)
        refuse(item, work.settings.openshift_version)
        state = await work.engine.state()
        formed = state.named(FORMED) is not None
        for name in work.manifests.folders if not formed else ():
            await take_along(self._hub.api, work.namespace, name)
        there = await self._machines(item, work)
        machines = [each for each in there if not leaving(each)]
        todo = scale(
            item["metadata"]["name"],
            wanted=int(item["spec"].get("replicas") or 0),
            listed=len(work.nodes.control_plane),
            machines={each["metadata"]["name"]: _is(each, "NodeReady") for each in machines},
            formed=formed,
            going=[each["metadata"]["name"] for each in there if leaving(each)],
        )
        if todo.refused and not formed:
            raise NotUsable("ReplicasRefused", todo.refused)
        used = [str(each["spec"].get("failureDomain")) for each in there]
        servers = [each.name for each in work.nodes.control_plane]
        for name in todo.missing:
            domain = domains.next_for(domains.of(work.facility), servers, used)
            used.append(str(domain))
            await self._make(item, work, name, domain)
        plan = await work.plan(self._hub.reads)
        if self._hub.installations.begun(work):
            work.engine.advance(plan, lambda step: work.of_control_plane(step.name))
        assets = state.named(ASSETS)
        if assets is not None:
            await self._write_kubeconfig(item, work, parse(assets.outputs["stdout"])["kubeconfig"])
        await self._call_up_to_date(item, machines)
        said.status = _counted(item, work, machines, formed=formed)
        if formed and assets is not None:
            said.status["version"] = installed(assets.inputs)
        complete = state.named(COMPLETE) is not None
        await self._hub.absences.settle(work)
        remediating = await own_remediation.remediate(self._hub.api, self._hub.absences, work, there, formed=formed)
        said.conditions.append(remediating)
        said.conditions += _conditions(plan, formed=formed, complete=complete, scaling=todo)
        left = [step.name for step in plan.waiting(lambda name: True)]
        said.conditions.append(
            conditions.condition(
                AS_DECLARED, not left, "NotYet" if left else "Done", f"not done: {', '.join(left)}" if left else ""
            )
        )
        if not left:
            await self._write_outputs(item, work, plan.outputs)
        waiting = [step.name for step in plan.waiting(work.of_control_plane)]
        reason, message = reason_of(work, work.of_control_plane, _WAITING), doing(work, work.of_control_plane)
        if reason == _WAITING and self._held(work):
            reason, message = HELD
        elif not message and waiting:
            message = f"not begun: {', '.join(waiting)}; waits for machines" if machines else "no machine yet"
        if formed:
            said.ready(True, "Formed", message)
            said.again = SOON if waiting else said.again
            return said
        return said.ready(False, reason, message, again=CALLED if reason == HELD[0] else SOON)

    async def _machines(self, item: Object, work: Work) -> list[Object]:
        labels = f"{CLUSTER_LABEL}={work.name},{NAME_LABEL}={item['metadata']['name']}"
        return await self._hub.reads.list(MACHINE, work.namespace, labels)

    async def _make(self, item: Object, work: Work, name: str, domain: str | None) -> None:
        """Create a Machine with its bootstrap and infrastructure objects; each may exist already, from a run that was
        ended."""
        api, spec = self._hub.api, item["spec"]["machineTemplate"]["spec"]
        reference = spec["infrastructureRef"]
        if reference.get("kind") != METAL_IPI_MACHINE.template.kind:
            raise NotUsable(
                "NoTemplate", f"infrastructureRef names a {reference.get('kind')}, no MetalIpiMachineTemplate"
            )
        template = await api.get(METAL_IPI_MACHINE.template, work.namespace, reference["name"])
        if template is None:
            raise NotUsable("NoTemplate", f"there is no MetalIpiMachineTemplate {work.namespace}/{reference['name']}")
        wanted: Mapping[str, Any] = item["spec"]["machineTemplate"].get("metadata") or {}
        labels = {
            **(wanted.get("labels") or {}),
            CLUSTER_LABEL: work.name,
            CONTROL_PLANE_LABEL: "",
            NAME_LABEL: item["metadata"]["name"],
        }
        annotations = dict(wanted.get("annotations") or {})
        metadata = {"name": name, "labels": labels, "annotations": annotations}
        group_kind = f"{METAL_IPI_MACHINE.template.kind}.{METAL_IPI_MACHINE.template.group}"
        cloned = {**annotations, **dict(zip(_FROM, (reference["name"], group_kind), strict=True))}
        owned = {**metadata, "ownerReferences": [owned_by(item)]}
        infrastructure = {"metadata": {**owned, "annotations": cloned}, "spec": template["spec"]["template"]["spec"]}
        await api.create(METAL_IPI_MACHINE.resource, work.namespace, infrastructure)
        await api.create(OPENSHIFT_CONFIG.resource, work.namespace, {"metadata": owned, "spec": {}})
        machine = {
            "metadata": {**metadata, "ownerReferences": [owned_by(item, controller=True)]},
            "spec": {
                "clusterName": work.name,
                "version": item["spec"]["version"],
                "bootstrap": {"configRef": _reference(OPENSHIFT_CONFIG.resource, name)},
                "infrastructureRef": _reference(METAL_IPI_MACHINE.resource, name),
                **({"failureDomain": domain} if domain else {}),
                **({"deletion": spec["deletion"]} if spec.get("deletion") else {}),
            },
        }
        await api.create(MACHINE, work.namespace, machine)

    async def _write_kubeconfig(self, item: Object, work: Work, kubeconfig: str) -> None:
        """As the contract says: by name, label, type and key."""
        body = secret_value(work.name, item, kubeconfig)
        await self._apply(work.namespace, f"{work.name}-kubeconfig", body)

    async def _write_outputs(self, item: Object, work: Work, outputs: Mapping[str, Any]) -> None:
        """Write the outputs that `up` has for a stack without a hub, as JSON; the kubeconfig has a Secret of its
        own."""
        published = {name: value for name, value in outputs.items() if name != "kubeconfig"}
        body = secret_value(work.name, item, json.dumps(published, sort_keys=True))
        await self._apply(work.namespace, outputs_secret(work.name), body)

    async def _call_up_to_date(self, item: Object, machines: Sequence[Object]) -> None:
        """Set on each Machine whether it has the wanted release, as the contract requires of control planes."""
        for machine in machines:
            so = machine["spec"].get("version") == item["spec"]["version"]
            found = conditions.condition("UpToDate", so, "UpToDate" if so else "NotUpToDate")
            if status_of(machine, "UpToDate") == (str(so),):
                continue
            (whole,) = (each for each in conditions.written(machine, [found]) if each["type"] == "UpToDate")
            place = machine["metadata"]
            body = {"status": {"conditions": [whole]}}
            await self._hub.api.apply(MACHINE, place["namespace"], place["name"], body, "status")

    def _mine(self, item: Object, work: Work) -> Callable[[str], bool]:
        return work.of_control_plane

    async def _gone(self, item: Object, work: Work) -> bool:
        refuse_while_it_stays(work)
        await work.engine.stop(work.of_control_plane)
        machines = await self._machines(item, work)
        for machine in machines:
            if not leaving(machine):
                await self._hub.api.delete(MACHINE, work.namespace, machine["metadata"]["name"])
        if machines:
            return False
        left = [urn for urn in (await work.engine.state()).entries if work.of_control_plane(name_of(urn))]
        return not left or work.engine.remove(left, await work.connections(), given_up=False)


def refuse(item: Object, release: str) -> None:
    """Raises NotUsable for a control plane of another release than `openshiftVersion` of the settings."""
    wanted = f"v{release}"
    if item["spec"]["version"] != wanted:
        raise NotUsable(
            "VersionRefused",
            f"spec.version is {item['spec']['version']}, and settings.openshiftVersion of the MetalIpiCluster "
            f"requires {wanted}: they must be the same. The cluster itself is upgraded by its own operator "
            "(docs/operating.md)",
        )


def installed(asked: Mapping[str, Any]) -> str:
    """The release with which a cluster was installed, in Cluster API's form, whatever the settings say now. `asked` are
    the inputs of its assets."""
    return f"v{json.loads(asked['stdin'])['version']}"


def _reference(resource: Any, name: str) -> dict[str, str]:
    return {"apiGroup": resource.group, "kind": resource.kind, "name": name}


def _is(machine: Object, kind: str) -> bool:
    return status_of(machine, kind) == ("True",)


def _counted(item: Object, work: Work, machines: Sequence[Object], *, formed: bool) -> dict[str, Any]:
    labels = (f"{CLUSTER_LABEL}={work.name}", CONTROL_PLANE_LABEL, f"{NAME_LABEL}={item['metadata']['name']}")
    return {
        "selector": ",".join(labels),
        "replicas": len(machines),
        "readyReplicas": sum(_is(each, "Ready") for each in machines),
        "availableReplicas": sum(_is(each, "Available") for each in machines),
        "upToDateReplicas": sum(each["spec"].get("version") == item["spec"]["version"] for each in machines),
        "externalManagedControlPlane": False,
        **({"initialization": {"controlPlaneInitialized": True}} if formed else {}),
    }


def _conditions(plan: Plan, *, formed: bool, complete: bool, scaling: Scale) -> list[dict[str, Any]]:
    removed = not any(step.name == REMOVAL for step in plan.steps.values()) or plan.settled(REMOVAL)
    return [
        conditions.condition(conditions.INITIALIZED, formed, "Formed" if formed else "NotFormed"),
        conditions.condition("BootstrapRemoved", formed and removed, "Removed" if removed else "NotRemoved"),
        conditions.condition("InstallComplete", complete, "Complete" if complete else "NotComplete"),
        conditions.condition(
            "ScalingUp",
            bool(scaling.missing),
            "ScalingRefused" if scaling.refused else "Scaling" if scaling.missing else "NotScaling",
            scaling.refused,
        ),
    ]
