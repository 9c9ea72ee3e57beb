"""Remediation of the control plane's own Machines that a MachineHealthCheck found unhealthy: one at a time is deleted
and replaced, and none without which etcd would lose its majority.

The rules are those of Cluster API's own control plane provider (sigs.k8s.io/cluster-api v1.12.2,
controlplane/kubeadm/internal/controllers/remediation.go) with these differences: before the cluster is formed, no
machine is replaced, because the installer configures the first machines with each other's addresses; there is no limit
on retries; and the choice between several machines does not depend on the health of its etcd member or its components.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metal_ipi.cluster_api import conditions
from metal_ipi.cluster_api.absences import Absences, TooManyAway
from metal_ipi.cluster_api.api import MACHINE, Api, Object, status_of
from metal_ipi.cluster_api.clusters import NotUsable, Work, leaving
from metal_ipi.cluster_api.conditions import HEALTHY, OWNER
from metal_ipi.cluster_api.reconcilers import quorum
from metal_ipi.cluster_api.reconcilers.remediation import tell
from metal_ipi.cluster_api.resources import METAL_IPI_MACHINE
from metal_ipi.provider.errors import ProviderError

REMEDIATING = "Remediating"
_ANNOTATION = "cluster.x-k8s.io/remediate-machine"
_DEFERRED, _REFUSED = "RemediationDeferred", "CannotBeRemediated"


def chosen(machines: Sequence[Object]) -> Object | None:
    """The Machine to replace first: a marked one, then one without a Node, then the oldest."""
    ill = [each for each in machines if status_of(each, HEALTHY) == status_of(each, OWNER) == ("False",)]

    def order(machine: Object) -> tuple[bool, bool, str]:
        metadata, status = machine["metadata"], machine.get("status") or {}
        marked = _ANNOTATION in (metadata.get("annotations") or {})
        return not marked, bool((status.get("nodeRef") or {}).get("name")), str(metadata.get("creationTimestamp"))

    return min(ill, key=order, default=None)


def obstacle(machine: Object, machines: Sequence[Object], *, formed: bool) -> tuple[str, str] | None:
    """Reason and message if a Machine must not be replaced now, because of the state of the others."""
    others = [each for each in machines if each is not machine]
    if not formed:
        return _DEFERRED, "the cluster is not formed yet"
    if not others:
        return _REFUSED, "it is the only machine of the control plane: etcd would be lost with it"
    if names := [each["metadata"]["name"] for each in others if leaving(each)]:
        return _DEFERRED, f"{', '.join(names)} is being deleted: the remediation waits for it"
    new = [each for each in others if not ((each.get("status") or {}).get("nodeRef") or {}).get("name")]
    if names := [each["metadata"]["name"] for each in new if status_of(each, HEALTHY) != ("False",)]:
        return _DEFERRED, f"{', '.join(names)} is being provisioned: the remediation waits for it"
    return None


async def remediate(
    api: Api, absences: Absences, work: Work, machines: Sequence[Object], *, formed: bool
) -> dict[str, Any]:
    """Delete one Machine that its owner has to replace; return the condition Remediating. `machines` are all of the
    control plane, also those that are being deleted."""
    await _acknowledge(api, machines)
    machine = chosen([each for each in machines if not leaving(each)])
    if machine is None:
        return conditions.condition(REMEDIATING, False, "NotRemediating")
    name = str(machine["metadata"]["name"])
    found = obstacle(machine, machines, formed=formed)
    if found is None:
        infrastructure = await api.get(
            METAL_IPI_MACHINE.resource, work.namespace, machine["spec"]["infrastructureRef"]["name"]
        )
        server = ((infrastructure or {}).get("spec") or {}).get("server")
        try:
            async with work.engine.deciding:
                if server in work.servers:
                    await quorum.keep(api, work, work.node(server))
                    await absences.take(work, machine, server, "not healthy")
                await api.delete(MACHINE, work.namespace, name)
        except TooManyAway as error:
            found = _DEFERRED, str(error)
        except NotUsable as error:
            found = _REFUSED, str(error)
        except ProviderError as error:
            found = _DEFERRED, f"it is not known whether etcd works without it: {error}"
    reason, message = found or ("MachineDeleting", "it is deleted and replaced")
    current = await api.get(MACHINE, work.namespace, name)
    if current is not None:
        await tell(api, current, conditions.condition(OWNER, False, reason, message))
    told = {_REFUSED: "Refused", _DEFERRED: "Deferred"}.get(reason, "Remediating")
    return conditions.condition(REMEDIATING, True, told, f"{name}: {message}")


async def _acknowledge(api: Api, machines: Sequence[Object]) -> None:
    """End the remediation request of a Machine that is healthy again, which MachineHealthCheck leaves to the owner.
    Otherwise the Machine would be deleted at once the next time, before any power cycle."""
    for machine in machines:
        if not leaving(machine) and (status_of(machine, HEALTHY), status_of(machine, OWNER)) == (("True",), ("False",)):
            await tell(api, machine, conditions.condition(OWNER, True, "Healthy"))
