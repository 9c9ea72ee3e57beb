"""The Kubernetes API of an installed cluster, as its users meet it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.kubernetes import build
from tests.end_to_end import processes
from tests.end_to_end.cluster import DOMAIN, names
from tests.end_to_end.project import Project, await_
from tests.end_to_end.user import User

pytestmark = [pytest.mark.lab, pytest.mark.engine]

POOL: dict[str, Any] = {
    "apiVersion": "metallb.io/v1beta1",
    "kind": "IPAddressPool",
    "metadata": {"name": "public", "namespace": "metallb-system"},
    "spec": {"addresses": ["192.0.2.144/28"]},
}
POOLS = "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools"
_SILENT_SECONDS = 70.0
"""A node counts as not ready after 40 s of silence."""


@pytest.fixture(scope="module")
def user(kubernetes: None, installed: Project, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(installed, tmp_path_factory.mktemp("user"))


def test_the_api_is_the_real_one(user: User, installed: Project) -> None:
    assert user("version") == f"v{build.pinned()}"
    supervisor = installed.supervisor()
    assert supervisor is not None
    running = [each.program for each in processes.family(supervisor.pid)]
    assert running.count("etcd") == 1
    assert running.count("kube-apiserver") == 3, "one for each machine of the control plane, none for bootstrap"


def test_nodes_are_ready_and_have_roles(user: User) -> None:
    # The installer knows of the workers: so the control plane is to have no work of theirs.
    roles = {"control-plane": ["control-plane", "master"], "worker": ["worker"]}
    taints = {"control-plane": ["node-role.kubernetes.io/master"], "worker": []}
    assert user("nodes") == {
        f"{name}.{DOMAIN}": {"ready": "True", "roles": roles[role], "taints": taints[role]}
        for name, role in names().items()
    }


def test_objects_of_metallb_are_checked_kept_and_outlive_a_machine(user: User, installed: Project) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metallb-system"}}
    assert user.apply(namespace)[0] == 200
    for spec, complaint in (
        ({"addresses": 5}, "spec.addresses"),
        ({"addresses": ["192.0.2.144/28"], "adresses": []}, "adresses"),
        ({}, "spec.addresses"),
    ):
        status, message = user.apply({**POOL, "spec": spec})
        assert status in (400, 422, 500) and complaint in message, (status, message)
    assert user("get", POOLS)["items"] == []
    assert user.apply(POOL) == (200, "")

    device = installed.devices()["lab-control-plane-0"]
    installed.inside("call", "POST", f"/devices/{device}/actions", json.dumps({"type": "power_off"}))
    assert user("get", f"{POOLS}/public")["spec"] == {**POOL["spec"], "autoAssign": True, "avoidBuggyIPs": False}
    assert user.apply({**POOL, "spec": {"addresses": ["192.0.2.160/28"]}}) == (200, "")
    lost = f"lab-control-plane-0.{DOMAIN}"
    await_(lambda: user("nodes")[lost]["ready"] == "Unknown", "the machine that is off is missed", _SILENT_SECONDS)
    assert [node["ready"] for node in user("nodes").values()].count("True") == 4


def test_down_ends_all_of_it(user: User, installed: Project) -> None:
    supervisor = installed.supervisor()
    assert supervisor is not None
    running = [each for each in processes.family(supervisor.pid) if each.program in ("etcd", "kube-apiserver")]
    assert {each.program for each in running} == {"etcd", "kube-apiserver"}
    installed.assert_down()
    assert not any(each.alive() for each in running)
