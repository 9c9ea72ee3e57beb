"""One stack from nothing to nothing: what the commands say, that they touch nothing they need not, and its API."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

import pytest

from lab.kubernetes import build
from tests.conformance.facilities import OWN_FIELDS, SITE
from tests.end_to_end import processes, secrets
from tests.end_to_end.cluster import CHECKS, DOMAIN, assert_finished, names
from tests.end_to_end.conftest import copies
from tests.end_to_end.processes import Process
from tests.end_to_end.project import Project, await_
from tests.end_to_end.user import User
from tools.engine import ensure

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
def installed(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A copy whose lab stack is up, with manifests of the user's, and with all that a site may say of its cluster."""
    site = {"install": {"manifests": [str(SITE)]}, "installConfig": OWN_FIELDS}
    for project in copies(tmp_path_factory.mktemp("installed"), variant=site):
        project.make("up")
        yield project


@pytest.fixture(scope="module")
def user(kubernetes: None, installed: Project, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(installed, tmp_path_factory.mktemp("user"))


def _of_the_lab(project: Project) -> list[Process]:
    """The lab's processes."""
    supervisor = project.supervisor()
    assert supervisor is not None
    return processes.family(supervisor.pid)


def _devices(project: Project) -> dict[str, tuple[str, str]]:
    return {d["hostname"]: (d["id"], d["updated_at"]) for d in project.holdings()["devices"]}


def test_outputs_have_exactly_the_promised_shape(installed: Project) -> None:
    output = assert_finished(installed)

    assert set(output) == {"cluster", "api", "bootstrap", "nodes", "kubeconfig", "kubeadminPassword", "cost"}
    assert output["cluster"] == {"name": "lab", "domain": DOMAIN, "version": "4.21.0-lab"}
    assert output["api"] == {"url": f"https://api.{DOMAIN}:6443"}
    assert output["kubeconfig"] == output["kubeadminPassword"] == "[secret]"
    for node in output["nodes"]:
        assert set(node) == {"name", "role", "public_ipv4", "private_ipv4", "checks"}
        read = {check["name"]: check["observed"] for check in node["checks"]}
        assert set(read) == CHECKS
        assert all(set(check) == {"name", "status", "observed"} for check in node["checks"])
        assert read["hostname"] == node["name"]
        assert read["afterburn-public-ipv4"] == node["public_ipv4"]
        assert read["afterburn-private-ipv4"] == node["private_ipv4"]


def test_the_api_is_the_real_one(user: User, installed: Project) -> None:
    assert user("version") == f"v{build.pinned()}"

    def running(program: str) -> int:
        return [each.program for each in _of_the_lab(installed)].count(program)

    assert running("etcd") == 1
    # That of the bootstrap machine first answers what it was asked (lab/kubernetes/process.py: for 10 s).
    await_(lambda: running("kube-apiserver") == 3, "one for each machine of the control plane, none for bootstrap", 15)


def test_the_users_manifests_are_there_from_the_beginning(user: User) -> None:
    assert user("get", "/api/v1/namespaces/site/configmaps/motd")["data"] == {"motd": "hello"}


def test_nodes_are_ready_and_have_roles(user: User) -> None:
    # The installer knows of the workers: so the control plane is to have no work of theirs.
    roles = {"control-plane": ["control-plane", "master"], "worker": ["worker"]}
    taints = {"control-plane": ["node-role.kubernetes.io/master"], "worker": []}
    assert user("nodes") == {
        f"{name}.{DOMAIN}": {"ready": "True", "roles": roles[role], "taints": taints[role]}
        for name, role in names().items()
    }


def test_the_cost_is_the_price_lists_sum(installed: Project) -> None:
    prices = {
        plan["slug"]: plan["pricing"]["hour"] for plan in json.loads(installed.inside("call", "GET", "/plans"))["plans"]
    }
    hourly = sum(prices[device["plan"]["slug"]] for device in installed.holdings()["devices"])
    cost = installed.output()["cost"]
    assert (cost["hourly"], cost["monthly"], cost["unknown"]) == (hourly, hourly * 730, [])
    assert cost["installing"] == hourly + prices["c3.small.x86"]


def test_a_second_up_and_one_after_refresh_change_nothing(installed: Project) -> None:
    before = _devices(installed)

    again = installed.make("up").out
    assert "up: no changes" in again and "preflight" not in again, "what orders nothing asks nobody"
    installed.assert_unchanged("refresh", "up")
    assert _devices(installed) == before
    assert_finished(installed)


def test_one_worker_more_and_one_less_touch_no_other_machine_and_tell_no_secret(installed: Project) -> None:
    before = _devices(installed)

    installed.configure(workers={"count": 3})
    preview = installed.make("preview")
    assert _devices(installed) == before, "a preview changes nothing"
    cost = "cost: 7.50 → 9.00 (+1.50) USD per hour, 5,475 → 6,570 (+1,095) per month"
    assert cost in preview.out, preview.out
    more = installed.make("up")
    after = _devices(installed)
    assert_finished(installed, workers=3)
    assert cost in more.out, more.out
    # One fewer than at first: which CoreOS the installer is made for is of no use once its assets are at work.
    assert "preflight (Preflight): 13 checks, all is well" in more.out, more.out
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"lab-worker-2"}
    created = re.findall(r"(\S+-device) \(Device\): (\S+)", more.out)
    assert created == [("lab-worker-2-device", "created")], more.out
    assert "lab-worker-2-device" in preview.out and "lab-worker-1-device" not in preview.out
    found = secrets.collect(installed, str(ensure(print).path))

    installed.configure()
    less = installed.make("up")
    assert _devices(installed) == before
    assert_finished(installed)
    assert re.findall(r"(\S+-device) \(Device\): (\S+)", less.out) == [("lab-worker-2-device", "deleted")]
    told = {"make preview": preview.text, "make up": more.text, "make up again": less.text}
    _assert_no_secret_is_shown_or_kept(installed, found, told)


def _assert_no_secret_is_shown_or_kept(project: Project, found: dict[str, str], told: dict[str, str]) -> None:
    """`found`: secrets and where they come from; `told`: what commands printed."""
    origins = set(found.values())
    assert origins >= {"API token", "TSIG key", "upload key", "passphrase"}, origins
    assert origins >= {"keys hostKeySeed", "install-assets-create stdout"}, origins
    assert any(origin.endswith((" environment", " spec")) for origin in origins), origins  # the key that opens nodes

    texts = {**told, **{f"make {target}": project.make(target).text for target in ("output", "refresh")}}
    for path in secrets.files(project):
        texts[str(path.relative_to(project.root))] = path.read_text(errors="replace")
    for device in project.holdings()["devices"]:
        assert device["userdata"], device
        texts[f"userdata of {device['hostname']}"] = device["userdata"]
    leaks = [leak for where, text in texts.items() for leak in secrets.leaks(found, where, text)]
    assert not leaks, "\n".join(leaks)


@pytest.mark.nightly
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

    def all_others_are_ready() -> bool:
        return [node["ready"] for node in user("nodes").values()].count("True") == 4

    await_(all_others_are_ready, "the other machines are ready", _SILENT_SECONDS)


def test_down_leaves_nothing_and_may_be_repeated(installed: Project) -> None:
    running = _of_the_lab(installed)
    assert re.search(r"down: \d+ deleted", installed.assert_down().out)
    assert not any(each.alive() for each in running)
    installed.assert_down()
