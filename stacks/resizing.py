"""Settings that may not change once the cluster is installed: the size of its control plane, except growth from three
machines on, and the addresses that OpenShift's platform announces.

Growth: etcd's operator adds the member of each control plane node that joins, also without Machine objects, as on
platform none (openshift/cluster-etcd-operator, pkg/operator/clustermembercontroller: getEtcdPeerURLToAdd). From one
machine: the topology is set at installation, and operators follow it (openshift/installer,
pkg/asset/manifests/topologies.go). Shrinking: that operator removes a member only with Machine objects
(pkg/operator/clustermemberremovalcontroller).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from metal_ipi.stacks.api_address import speaks_bgp
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.api_address import KubeVip
from metal_ipi.stacks.settings import Settings


def refused(settings: Settings, begun: Mapping[str, Any], machines: AbstractSet[str]) -> Found:
    """Find forbidden changes of the control plane's size, and of the addresses of API and ingress.

    Args:
        begun: the install-config.yaml with which the cluster was installed.
        machines: the machines in the state, by short host name.
    """
    yield from _addresses(settings, begun)
    count = settings.control_plane.count
    if (begun.get("controlPlane") or {}).get("replicas") == 1 and count > 1:
        yield (
            "controlPlane.count",
            str(count),
            "the cluster was installed with one control plane machine, and its topology stays SingleReplica: "
            "OpenShift cannot make it highly available",
            "set it to 1, and add workers; or install another cluster",
        )
    arbiters = (begun.get("arbiter") or {}).get("replicas") or 0
    if arbiters != settings.arbiter.count:
        yield (
            "arbiter.count",
            str(settings.arbiter.count),
            f"the cluster was installed with {arbiters or 'none'}, and its topology stays: OpenShift has no way from"
            " two control plane machines with an arbiter to another control plane, or back",
            f"set it to {arbiters}, and controlPlane.count to what it was; or install another cluster",
        )
    wanted = {node.hostname for node in Nodes.of(settings).control_plane}
    gone = sorted(name for name in machines - wanted if name.startswith(f"{settings.cluster_name}-control-plane-"))
    if gone:
        yield (
            "controlPlane.count",
            str(count),
            f"{', '.join(gone)} would be deleted, but on platform none nothing removes their members from etcd: these "
            "would still count for its quorum",
            "keep them; to replace one under its name, see docs/operating.md",
        )


def takes_pods(begun: Mapping[str, Any]) -> bool:
    """Whether the control plane runs pods. It does if the cluster was installed without workers, and that stays so
    (openshift/installer, pkg/asset/manifests/scheduler.go)."""
    return not any(pool.get("replicas") for pool in begun.get("compute") or ())


def _addresses(settings: Settings, begun: Mapping[str, Any]) -> Found:
    """OpenShift's platform, and the addresses that it announces, cannot change after the installation."""
    vips: Mapping[str, Any] = (begun.get("platform") or {}).get("baremetal") or {}
    was = tuple(", ".join(vips.get(name) or ()) for name in ("apiVIPs", "ingressVIPs"))
    for name, before, now in zip(
        ("apiAddress", "ingressAddress"), was, settings.platform_vips or ("", ""), strict=True
    ):
        if before != now:
            section = settings.api_address if name == "apiAddress" else settings.ingress_address
            yield (
                f"{name}.address" if before and now else f"{name}.type",
                now if before and now else section.type,
                f"the cluster was installed with {before or 'no address that its platform keeps'}, which cannot "
                "change: names would lead to an address where nothing answers",
                f"set {name} to what it was" if before else "set it to another type; or install another cluster",
            )
    external = (begun.get("platform") or {}).get("external")
    now = (settings.install_config.rendered_platform or {}).get("external")
    if external != now:
        yield (
            "installConfig.platform",
            "external" if now else "(not set)",
            f"the cluster was installed with {external or 'another platform'}, and that stays",
            "set it to what it was" if external else "remove it; or install another cluster",
        )
    ingress = settings.ingress_address
    bgp = isinstance(ingress, KubeVip) and ingress.mode == "bgp"
    if bgp and speaks_bgp(settings) and takes_pods(begun) and settings.workers.count:
        yield (
            "ingressAddress.mode",
            "bgp",
            "the cluster was installed without workers, so its control plane has routers, too, and announces the "
            "API's address to the same peers: a peer accepts one session from each machine",
            "set ingressAddress.type to external or dns",
        )
