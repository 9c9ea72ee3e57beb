"""All clusters of a hub with their conditions: `python -m metal_ipi.cluster_api.fleet [--kubeconfig FILE]` prints them.

It prints YAML, one document for each Cluster. The account of the kubeconfig must be allowed to list Clusters,
MetalIpiClusters, OpenShiftControlPlanes and Machines in all namespaces. Secrets are not read.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from metal_ipi.cluster_api.api import CLUSTER, MACHINE, Api, ApiError, Object, labels_of, status_of
from metal_ipi.cluster_api.clusters import is_paused
from metal_ipi.cluster_api.reconcilers.config import CONTROL_PLANE_LABEL
from metal_ipi.cluster_api.reconcilers.control_plane import AS_DECLARED
from metal_ipi.cluster_api.resources import METAL_IPI_CLUSTER, OPENSHIFT_CONTROL_PLANE
from metal_ipi.cluster_api.store import CLUSTER_LABEL

_SAID = ("status", "reason", "message", "lastTransitionTime")


async def clusters(api: Api) -> list[dict[str, Any]]:
    """Each Cluster that a MetalIpiCluster belongs to. Raises ApiError."""
    kinds = (CLUSTER, METAL_IPI_CLUSTER.resource, OPENSHIFT_CONTROL_PLANE.resource, MACHINE)
    found, facilities, control_planes, machines = await asyncio.gather(*(api.list(kind, "") for kind in kinds))
    there, planes = _by_name(facilities), _by_name(control_planes)
    return [
        _status(each, facility, _referred(each, "controlPlaneRef", planes), _machines_of(each, machines))
        for each in found
        if (facility := _referred(each, "infrastructureRef", there)) is not None
    ]


def _status(
    cluster: Object, facility: Object, control_plane: Object | None, machines: Sequence[Object]
) -> dict[str, Any]:
    settings: Mapping[str, Any] = facility["spec"].get("settings") or {}
    said = {
        "Cluster/Available": status_of(cluster, "Available", _SAID),
        "MetalIpiCluster/Ready": status_of(facility, "Ready", _SAID),
        "OpenShiftControlPlane/Available": status_of(control_plane or {}, "Available", _SAID),
        f"OpenShiftControlPlane/{AS_DECLARED}": status_of(control_plane or {}, AS_DECLARED, _SAID),
    }
    return {
        "namespace": cluster["metadata"]["namespace"],
        "name": cluster["metadata"]["name"],
        "domain": f"{settings.get('clusterName')}.{settings.get('baseDomain')}",
        "platform": (settings.get("platform") or {}).get("type"),
        "version": ((control_plane or {}).get("spec") or {}).get("version"),
        "paused": is_paused(cluster, cluster),
        "deleted": bool(cluster["metadata"].get("deletionTimestamp")),
        "machines": _counted(machines),
        "conditions": {name: dict(zip(_SAID, each, strict=True)) for name, each in said.items() if each},
    }


def _counted(machines: Sequence[Object]) -> dict[str, dict[str, int]]:
    """How many machines of each role there are, how many are available, and how many are being deleted."""
    roles = {"control-plane": list[Object](), "worker": list[Object]()}
    for each in machines:
        roles["control-plane" if CONTROL_PLANE_LABEL in labels_of(each) else "worker"].append(each)
    return {
        role: {
            "there": len(found),
            "available": sum(status_of(each, "Available") == ("True",) for each in found),
            "leaving": sum(bool(each["metadata"].get("deletionTimestamp")) for each in found),
        }
        for role, found in roles.items()
    }


def _by_name(items: Sequence[Object]) -> dict[tuple[str, str], Object]:
    return {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in items}


def _referred(cluster: Object, reference: str, items: Mapping[tuple[str, str], Object]) -> Object | None:
    named: Mapping[str, Any] = (cluster.get("spec") or {}).get(reference) or {}
    return items.get((cluster["metadata"]["namespace"], str(named.get("name"))))


def _machines_of(cluster: Object, machines: Sequence[Object]) -> list[Object]:
    namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
    return [
        each
        for each in machines
        if each["metadata"]["namespace"] == namespace and labels_of(each).get(CLUSTER_LABEL) == name
    ]


def main() -> int:
    """Print the clusters. Returns 1 if the hub does not answer."""
    parser = argparse.ArgumentParser(prog="python -m metal_ipi.cluster_api.fleet", description=__doc__)
    parser.add_argument("--kubeconfig", help="the hub; not set: the one that this runs in")
    try:
        found = asyncio.run(clusters(Api(parser.parse_args().kubeconfig)))
    except ApiError as error:
        print(error, file=sys.stderr)
        return 1
    yaml.safe_dump_all(found, sys.stdout, sort_keys=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
