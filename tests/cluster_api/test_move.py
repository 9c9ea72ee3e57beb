"""`clusterctl move` between two hubs: what goes along, and what the providers of the other hub make of it.

The core's controllers are not there: what they would write, the test writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster_api import hub as hubs
from tests.cluster_api import objects as made
from tests.cluster_api.hub import NAMESPACE, OWN, Hub
from tests.cluster_api.test_contract import control_plane_machine, provisioned

pytestmark = [
    pytest.mark.programs,
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore:HTTPResponse.getheaders:DeprecationWarning"),  # of the official client
]
_NAME, _MACHINE = "goes", "goes-0"


def _as_the_core_leaves_it(hub: Hub) -> None:
    """Owned by the Cluster, and provisioned."""
    cluster = hub.get(made.CLUSTERS, _NAME)
    assert cluster is not None
    owner = {key: cluster["metadata"][key] for key in ("name", "uid")} | {
        key: cluster[key] for key in ("apiVersion", "kind")
    }
    for kind, name in ((made.FACILITIES, _NAME), (made.MACHINES, _MACHINE)):
        hub.patch(kind, name, {"metadata": {"ownerReferences": [owner]}})
    done = {"initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}}
    time = {"lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Initialized"}
    done["conditions"] = [{"type": "ControlPlaneInitialized", "status": "True", "message": "", **time}]  # type: ignore[assignment]
    hub.patch(made.CLUSTERS, _NAME, {"status": done}, "status")
    hub.patch(made.MACHINES, _MACHINE, {"status": {"nodeRef": {"name": "node"}}}, "status")


def _claims(hub: Hub) -> set[str]:
    """Whose servers are."""
    found = hub.list("leases.coordination.k8s.io", OWN)
    return {value for each in found for value in (each["metadata"].get("annotations") or {}).values()}


def _data(hub: Hub, name: str) -> Any:
    return (hub.get("secrets", f"{_NAME}-{name}") or {}).get("data")


def test_a_cluster_goes_to_another_hub_and_back(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        hubs.hub(tmp_path / "one", lease=60) as one,
        hubs.hub(tmp_path / "two", lease=60) as two,
        one.working(environment=hubs.ALONE),
        two.working(environment=hubs.ALONE),
    ):
        provisioned(one, _NAME)
        template = made.remediation_template(one, "gentle", powerCycles=2)
        one.until(lambda: _data(one, "install-state"), "the cluster has its keys")
        control_plane_machine(one, _NAME, _MACHINE, {"server": "control-plane-1"})
        for start, end in ((one, two), (two, one)):
            start.until(lambda start=start: f"{NAMESPACE}/{_MACHINE}" in _claims(start), "it has its server")
            start.until(lambda start=start: _is_labelled(start), "the settings go along")
            _as_the_core_leaves_it(start)
            kept = _data(start, "settings"), _data(start, "install-state")
            start.clusterctl("move", "--namespace", NAMESPACE, "--to-kubeconfig", str(end.admin))
            assert not start.list(made.SERVERS) and not start.list(made.FACILITIES)
            assert (_data(end, "settings"), _data(end, "install-state")) == kept
            assert end.get(made.REMEDIATION_TEMPLATES, str(template["name"]))
            end.until(lambda end=end: end.condition(made.FACILITIES, _NAME, "Paused")[0] == "False", "it is worked on")
            end.patch(made.FACILITIES, _NAME, {"status": {"initialization": {"provisioned": True}}}, "status")
        one.until(lambda: f"{NAMESPACE}/{_MACHINE}" in _claims(one), "it has its server again")
        seen = one.get(made.SERVERS, _MACHINE)
        assert seen is not None and seen["spec"]["server"] == "control-plane-1"


def _is_labelled(hub: Hub) -> bool:
    labels = (hub.get("secrets", f"{_NAME}-settings") or {"metadata": {}})["metadata"].get("labels") or {}
    return "clusterctl.cluster.x-k8s.io/move" in labels
