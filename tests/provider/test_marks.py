"""What people put on a node, told from what software keeps there."""

from __future__ import annotations

from typing import Any

from metal_ipi.provider.installation.marks import WORKER_ROLE, Marks, marks_of, missing

OURS_AND_THEIRS: dict[str, Any] = {
    # As `oc get node` shows a worker of OpenShift 4.19 on platform none; what people added is marked.
    "metadata": {
        "labels": {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": "worker-0",
            "kubernetes.io/os": "linux",
            "node-role.kubernetes.io/worker": "",
            "node.openshift.io/os_id": "rhel",
            "feature.node.kubernetes.io/cpu-model.family": "6",
            "egress-service.k8s.ovn.org/shop-web": "",
            "node-role.kubernetes.io/infra": "",  # people
            "topology.kubernetes.io/zone": "row-3",  # people
            "k8s.ovn.org/egress-assignable": "",  # people
            "node.kubernetes.io/exclude-from-external-load-balancers": "",  # people
            "example.com/rack": "7",  # people
        },
        "annotations": {
            "k8s.ovn.org/node-chassis-id": "8f8ae2f1",
            "k8s.ovn.org/node-subnets": "{}",
            "machineconfiguration.openshift.io/currentConfig": "rendered-worker-1",
            "machineconfiguration.openshift.io/state": "Done",
            "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            "csi.volume.kubernetes.io/nodeid": "{}",
            "node.alpha.kubernetes.io/ttl": "0",
            "metal-ipi/cordoned": "1111111111111111",
            "example.com/owner": "shop",  # people
        },
    },
    "spec": {
        "unschedulable": True,
        "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-01T00:00:00Z"},
            {"key": "UpdateInProgress", "effect": "PreferNoSchedule"},
            {"key": "node-role.kubernetes.io/infra", "effect": "NoSchedule", "value": "reserved"},  # people
            {"key": "example.com/gpu", "effect": "NoExecute", "timeAdded": "2026-11-01T00:00:00Z"},  # people
        ],
    },
}
THEIRS = Marks(
    labels={
        "node-role.kubernetes.io/infra": "",
        "topology.kubernetes.io/zone": "row-3",
        "k8s.ovn.org/egress-assignable": "",
        "node.kubernetes.io/exclude-from-external-load-balancers": "",
        "example.com/rack": "7",
    },
    annotations={"example.com/owner": "shop"},
    taints=[
        {"key": "node-role.kubernetes.io/infra", "value": "reserved", "effect": "NoSchedule"},
        {"key": "example.com/gpu", "effect": "NoExecute"},
    ],
    unschedulable=False,
    no_worker=False,
)
NEW: dict[str, Any] = {
    "metadata": {"labels": {WORKER_ROLE: "", "topology.kubernetes.io/zone": "from-the-cloud"}, "annotations": {}},
    "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
}


def test_what_people_put_there() -> None:
    assert marks_of(OURS_AND_THEIRS, cordoned_here=True) == THEIRS
    assert marks_of(OURS_AND_THEIRS, cordoned_here=False).unschedulable is True


def test_a_new_node_gets_what_it_lacks_and_keeps_what_it_has() -> None:
    patch = missing(THEIRS, NEW, worker=True)
    assert patch is not None
    labels = {key: value for key, value in THEIRS.labels.items() if key != "topology.kubernetes.io/zone"}
    assert patch == {
        "metadata": {"labels": labels, "annotations": {"example.com/owner": "shop"}},
        "spec": {"taints": [*NEW["spec"]["taints"], *THEIRS.taints]},
    }
    # Once more, there is nothing to do.
    metadata = {"labels": {**NEW["metadata"]["labels"], **labels}, "annotations": THEIRS.annotations}
    assert missing(THEIRS, {"metadata": metadata, "spec": patch["spec"]}, worker=True) is None


def test_what_administrators_took_away_or_closed_stays_so() -> None:
    node = {"metadata": {"labels": {"node-role.kubernetes.io/infra": ""}}, "spec": {"unschedulable": True}}
    marks = marks_of(node, cordoned_here=False)
    assert missing(marks, NEW, worker=True) == {
        "metadata": {"labels": {"node-role.kubernetes.io/infra": "", WORKER_ROLE: None}},
        "spec": {"unschedulable": True},
    }
    # On a control plane machine that role is the machine config operator's.
    patch = missing(marks, NEW, worker=False)
    assert patch is not None and WORKER_ROLE not in patch["metadata"]["labels"]


def test_nothing_to_put_back() -> None:
    node = {"metadata": {"labels": {WORKER_ROLE: ""}}, "spec": {}}
    assert missing(marks_of(node, cordoned_here=False), NEW, worker=True) is None
