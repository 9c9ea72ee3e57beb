"""Whether a control plane that stands may have another number of machines. It may grow, if it had three to begin with.

Up: etcd's operator takes in the member of each control plane node that joins, also where there are no Machine objects,
as on platform none (openshift/cluster-etcd-operator, pkg/operator/clustermembercontroller: getEtcdPeerURLToAdd). From
one: the topology is written down when the cluster is installed, and operators go by it (openshift/installer,
pkg/asset/manifests/topologies.go). Down: only Machine objects have that operator take a member out
(pkg/operator/clustermemberremovalcontroller).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.settings import Settings


def refused(settings: Settings, begun: Mapping[str, Any], machines: AbstractSet[str]) -> Found:
    """What is wrong with the number.

    Args:
        begun: the install-config.yaml that the cluster was installed with.
        machines: those that are there, by short host name.
    """
    count = settings.control_plane.count
    if (begun.get("controlPlane") or {}).get("replicas") == 1 and count > 1:
        yield (
            "controlPlane.count",
            str(count),
            "the cluster was installed with one control plane machine, and its topology stays SingleReplica: OpenShift"
            " makes no highly available cluster of it",
            "set it to 1, and add workers; or install another cluster",
        )
    wanted = {node.hostname for node in Nodes.of(settings).control_plane}
    gone = sorted(name for name in machines - wanted if name.startswith(f"{settings.cluster_name}-control-plane-"))
    if gone:
        yield (
            "controlPlane.count",
            str(count),
            f"{', '.join(gone)} would go, and nobody takes members out of etcd on platform none: they would count on"
            " for its quorum",
            "keep them; to have one made anew under its name, see docs/operating.md",
        )
