"""What a control plane does about its own Machines that a MachineHealthCheck found not healthy: it has one at a time be
deleted and made anew, and none without which etcd would end.

The rules are those of Cluster API's own control plane provider (sigs.k8s.io/cluster-api v1.12.2,
controlplane/kubeadm/internal/controllers/remediation.go) with these differences: before the cluster is formed, no
machine is made anew, because the installer tells the machines that form it of each other; there is no limit on retries;
and which of several machines goes first does not depend on the health of its etcd member or its components.
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
    """The Machine to be made anew first: one that somebody marked, one that has no Node, the oldest."""
    ill = [each for each in machines if status_of(each, HEALTHY) == status_of(each, OWNER) == ("False",)]

    def order(machine: Object) -> tuple[bool, bool, str]:
        metadata, status = machine["metadata"], machine.get("status") or {}
        marked = _ANNOTATION in (metadata.get("annotations") or {})
        return not marked, bool((status.get("nodeRef") or {}).get("name")), str(metadata.get("creationTimestamp"))

    return min(ill, key=order, default=None)


def obstacle(machine: Object, machines: Sequence[Object], *, formed: bool) -> tuple[str, str] | None:
    """Reason and message where a Machine is not to be made anew now, by what is known of the others."""
    others = [each for each in machines if each is not machine]
    if not formed:
        return _DEFERRED, "the cluster is not formed yet"
    if not others:
        return _REFUSED, "it is the only machine of the control plane: etcd would be lost with it"
    if names := [each["metadata"]["name"] for each in others if leaving(each)]:
        return _DEFERRED, f"{', '.join(names)} is being deleted: it is waited for"
    new = [each for each in others if not ((each.get("status") or {}).get("nodeRef") or {}).get("name")]
    if names := [each["metadata"]["name"] for each in new if status_of(each, HEALTHY) != ("False",)]:
        return _DEFERRED, f"{', '.join(names)} is being provisioned: it is waited for"
    return None


async def remediate(
    api: Api, absences: Absences, work: Work, machines: Sequence[Object], *, formed: bool
) -> dict[str, Any]:
    """Have one Machine go that is its owner's to make anew; answers the condition Remediating. `machines` are all of
    the control plane, also those that are being deleted."""
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
            found = _DEFERRED, f"whether etcd goes on without it is not known: {error}"
    reason, message = found or ("MachineDeleting", "it is deleted, and made anew")
    current = await api.get(MACHINE, work.namespace, name)
    if current is not None:
        await tell(api, current, conditions.condition(OWNER, False, reason, message))
    told = {_REFUSED: "Refused", _DEFERRED: "Deferred"}.get(reason, "Remediating")
    return conditions.condition(REMEDIATING, True, told, f"{name}: {message}")


async def _acknowledge(api: Api, machines: Sequence[Object]) -> None:
    """End what the owner of a Machine was asked for, once it is healthy again: MachineHealthCheck leaves that to the
    owner. Else the Machine would be deleted at once the next time, before any power cycle."""
    for machine in machines:
        if not leaving(machine) and (status_of(machine, HEALTHY), status_of(machine, OWNER)) == (("True",), ("False",)):
            await tell(api, machine, conditions.condition(OWNER, True, "Healthy"))
