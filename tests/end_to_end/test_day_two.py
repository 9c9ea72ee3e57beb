"""The days after: operators through the real OLM, their objects, the image registry, labels and taints."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project
from tests.end_to_end.user import User
from tests.stacks.answers import stack_file

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly, pytest.mark.usefixtures("kubernetes")]
_STACK = "storage"
_NODE = "/api/v1/nodes/storage-worker-1.storage.facility.test"
_WIDGET = "/apis/example.facility.test/v1/namespaces/example/widgets/first"
_CSVS = "/apis/operators.coreos.com/v1alpha1/namespaces/example/clusterserviceversions"
_CONFIG = "/apis/imageregistry.operator.openshift.io/v1/configs/cluster"
_CLAIMS = "/api/v1/namespaces/openshift-image-registry/persistentvolumeclaims"
_NAMESPACES = "/api/v1/namespaces"


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy whose cluster is installed, shared by this module's tests, which run in their order."""
    for project in copies(tmp_path_factory.mktemp(_STACK), stack=_STACK):
        project.make("up")
        yield project


@pytest.fixture
def user(rack: Project, tmp_path: Path) -> User:
    return User(rack, tmp_path)


def _day_two(**changes: Any) -> dict[str, Any]:
    return {**stack_file(_STACK)["dayTwo"], **changes}


def _operator(**changes: Any) -> dict[str, Any]:
    (operator,) = stack_file(_STACK)["dayTwo"]["operators"]
    return {**operator, **changes}


def _marks(user: User) -> tuple[dict[str, str], list[dict[str, str]]]:
    node = user("get", _NODE)
    labels = {key: value for key, value in node["metadata"]["labels"].items() if key.startswith("example.com/")}
    return labels, node["spec"].get("taints") or []


def _versions(user: User) -> dict[str, str]:
    names = {item["metadata"]["name"]: item["status"]["phase"] for item in user("get", _CSVS)["items"]}
    return {name: phase for name, phase in names.items() if name.startswith("example-")}  # others are copies of OLM


def test_all_of_it_is_there_and_nothing_changes(rack: Project, user: User) -> None:
    assert _marks(user) == (
        {"example.com/disks": "nvme", "example.com/rack": "2"},
        [{"key": "example.com/reserved", "value": "tests", "effect": "PreferNoSchedule"}],
    )
    assert _versions(user) == {"example-operator.v1.0.0": "Succeeded"}
    registry = user("get", _CONFIG)
    (claim,) = user("get", _CLAIMS)["items"]
    assert registry["spec"]["storage"] == {"managementState": "Unmanaged", "pvc": {"claim": claim["metadata"]["name"]}}
    assert registry["spec"]["logLevel"] == "Normal", "others' fields stay"
    rack.assert_unchanged("preview", "up")
    rack.make("refresh")  # which finds what operators have said since
    rack.assert_unchanged("up")


def test_changes_are_made_in_place_and_drift_is_put_right(rack: Project, user: User) -> None:
    (first,) = _operator()["objects"]
    larger = {**first, "manifest": {**first["manifest"], "spec": {"size": 2}}}
    rack.configure(
        dayTwo=_day_two(operators=[_operator(channel="next", objects=[larger])], registry={"type": "empty-dir"}),
        workers={"labels": {"example.com/disks": "ssd"}},
    )
    assert "replaced" not in rack.make("up").out
    assert _versions(user)["example-operator.v1.1.0"] == "Succeeded"
    assert user("get", _WIDGET)["spec"] == {"size": 2}
    assert user("get", _CONFIG)["spec"]["storage"] == {"managementState": "Unmanaged", "emptyDir": {}}
    (kept,) = user("get", _CLAIMS)["items"]
    assert "deletionTimestamp" not in kept["metadata"], "images stay"
    other = {"metadata": {"labels": {"example.com/disks": "x", "example.com/own": "y"}}, "spec": {"taints": None}}
    user("merge", _NODE, json.dumps(other))
    rack.make("refresh")
    assert "1 updated" in rack.make("up").out
    labels, taints = _marks(user)
    assert labels == {"example.com/disks": "ssd", "example.com/rack": "2", "example.com/own": "y"}
    assert len(taints) == 1


def test_a_gate_says_what_stands_in_the_way_and_the_next_up_goes_on(rack: Project, user: User) -> None:
    manual = _operator(package="kubernetes-nmstate-operator", namespace="manual", approval="manual", objects=[])
    day_two = _day_two(nmState=None, operators=[_operator(channel="next"), manual])
    rack.configure(dayTwo=day_two, timeouts={"dayTwo": 15})
    told = rack.make("up", fails=True).text
    assert "gate day-two-kubernetes-nmstate-operator (operator-installed) did not pass within 15 s" in told
    assert "(kubernetes-nmstate-operator.v1.0.0) is not approved: oc -n manual patch installplan" in told
    plans = "/apis/operators.coreos.com/v1alpha1/namespaces/manual/installplans"
    (plan,) = user("get", plans)["items"]
    user("merge", f"{plans}/{plan['metadata']['name']}", json.dumps({"spec": {"approved": True}}))
    rack.configure(dayTwo=day_two)
    rack.make("up")


def test_what_is_no_longer_wanted_goes_and_the_registry_stays(rack: Project, user: User) -> None:
    nothing = dict.fromkeys(("lvmStorage", "nmState", "nodeHealthCheck"))
    rack.configure(dayTwo={**nothing, "operators": [], "registry": {"type": "removed"}})
    rack.make("up")
    names = {item["metadata"]["name"] for item in user("get", _NAMESPACES)["items"]}
    assert not names & {"example", "openshift-storage", "openshift-nmstate", "openshift-workload-availability"}
    assert user("get", _CONFIG)["spec"]["managementState"] == "Removed"
    rack.restore()
    rack.assert_down()
