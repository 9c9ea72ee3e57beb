"""The Node object of a machine that is installed again: removed, made anew, and given back what people put on it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.installation import Installation
from metal_ipi.provider.resources.installation import BEING_INSTALLED
from tests.provider.fake_machine import FakeMachine, node_of
from tests.provider.harness import kills, until
from tests.provider.installation_site import NEW, OLD, PACE, UNFINISHED, Site

NODE = node_of("worker-0")
RECORD = f"metal-ipi-node-{NODE}"
CHASSIS = "k8s.ovn.org/node-chassis-id"
TAINT = {"key": "example.com/gpu", "effect": "NoSchedule"}


def marked(site: Site) -> dict[str, Any]:
    """The node, with what people put on it and what others did."""
    node = site.nodes.nodes[NODE]
    node["metadata"]["labels"].update({"example.com/rack": "7", "node-role.kubernetes.io/infra": ""})
    node["metadata"]["annotations"].update({"example.com/owner": "shop", "node.alpha.kubernetes.io/ttl": "15"})
    node["spec"]["taints"] = [TAINT, {"key": "UpdateInProgress", "effect": "PreferNoSchedule"}]
    return node


def is_restored(site: Site, machine: FakeMachine) -> None:
    """What people put there is back, once, and nothing else."""
    node = site.nodes.nodes[NODE]
    assert node["metadata"]["labels"] == {
        "kubernetes.io/hostname": NODE,
        "node-role.kubernetes.io/worker": "",
        "node-role.kubernetes.io/infra": "",
        "example.com/rack": "7",
    }
    assert node["metadata"]["annotations"] == {CHASSIS: machine.chassis, "example.com/owner": "shop"}
    assert node["spec"] == {"taints": [TAINT]}
    assert site.nodes.config_maps == {}


async def test_it_is_another_object_with_what_people_put_on_the_former(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    before = marked(site)["metadata"]["uid"]
    await site.up(machine)
    is_restored(site, machine)
    assert site.nodes.nodes[NODE]["metadata"]["uid"] != before
    # After the drain, before the machine comes back.
    order = [entry for entry in site.log if entry.split()[0] in ("cordon", "install", "remove", "reboot", "put")]
    assert order == [f"cordon {NODE}", "install worker-0", f"remove {NODE}", "reboot worker-0", f"put back {NODE}"]
    told = [message for message in site.told.messages if "has its former labels again" in message]
    assert told == [
        f"node {NODE} has its former labels again: labels example.com/rack, node-role.kubernetes.io/infra; "
        "annotations example.com/owner; taints example.com/gpu:NoSchedule"
    ]


async def test_an_administrators_cordon_comes_back(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    site.nodes.nodes[NODE]["spec"]["unschedulable"] = True
    await site.up(machine)
    assert site.nodes.nodes[NODE]["spec"] == {"unschedulable": True}
    assert not any("cordon" in entry for entry in site.log) and machine.installs == 1
    assert f"node {NODE} stays cordoned: it was before it was installed again" in site.told.messages


@kills
@pytest.mark.parametrize("later", [0.0, pytest.param(0.02, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("events", range(10))
async def test_killed_anywhere_it_is_finished_by_the_next_run(site: Site, events: int, later: float) -> None:
    machine, other = await site.machine("worker-0", installed=OLD), await site.machine("worker-1", installed=OLD)
    site.nodes.pod("web", NODE)
    marked(site)
    before = site.states["worker-0"]
    await site.killed(machine, lambda: len(site.log) >= events, later)
    # The engine was killed, too: nothing of that run is in the state, also where it had come to its end.
    site.states["worker-0"] = before
    assert before["generation"] == OLD
    await site.up(machine)
    is_restored(site, machine)
    assert machine.installs == 1 and machine.running == "disk" and machine.disk == NEW
    # Who is killed between a request and its answer asks once more: neither of these minds.
    assert site.log.count(f"cordon {NODE}") in (1, 2) and site.log.count("evict web") in (1, 2)
    assert site.log.count(f"remove {NODE}") == site.log.count(f"register {NODE}") == 1
    assert site.log[-1].startswith(("check", "put back"))
    assert not any("worker-1" in entry for entry in site.log) and other.disk == OLD


@kills
async def test_killed_while_an_installation_that_was_not_finished_is_gone_on_with(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    marked(site)
    site.states["worker-0"] = dict(UNFINISHED)
    await site.killed(machine, lambda: f"remove {NODE}" in site.log)
    await site.up(machine)
    is_restored(site, machine)


async def test_what_changed_meanwhile_is_what_counts(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    marked(site)
    site.nodes.pod("web", NODE)
    site.nodes.budgets["web"] = "no"
    with pytest.raises(ProviderError, match="could not be drained"):
        await site.up(machine)
    site.nodes.nodes[NODE]["metadata"]["labels"]["example.com/rack"] = "8"
    site.nodes.budgets.clear()
    site.another_run()
    await site.up(machine)
    assert site.nodes.nodes[NODE]["metadata"]["labels"]["example.com/rack"] == "8"
    assert site.nodes.nodes[NODE]["spec"] == {"taints": [TAINT]}  # our own cordon is not taken for somebody's


@pytest.mark.parametrize("closed", [False, True])
async def test_health_checks_leave_the_node_alone_until_it_is_ready_again(site: Site, closed: bool) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    site.nodes.nodes[NODE]["spec"]["unschedulable"] = closed  # by an administrator
    respond, labelled = site.cluster.respond, list[tuple[str, bool]]()

    def watch(method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        node = site.nodes.nodes.get(NODE)
        if method == "DELETE" and path == f"/api/v1/nodes/{NODE}" and node:
            labelled.append(("former", BEING_INSTALLED in node["metadata"]["labels"]))
        answer = respond(method, path, body)
        if method == "DELETE" and path.endswith(f"configmaps/{RECORD}"):
            labelled.append(("new", BEING_INSTALLED in site.nodes.nodes[NODE]["metadata"]["labels"]))
        return answer

    site.cluster.respond = watch
    await site.up(machine)
    assert labelled == [("former", True), ("new", True)]
    assert BEING_INSTALLED not in site.nodes.nodes[NODE]["metadata"]["labels"]


async def test_somebody_changes_the_node_at_the_same_moment(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    marked(site)
    respond, met = site.cluster.respond, list[str]()

    def meddle(method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """Once before it is removed, and once before it is given back its marks."""
        if path == f"/api/v1/nodes/{NODE}" and "kexec worker-0" in site.log and method not in ("GET", *met):
            met.append(method)
            site.nodes.set_ready(NODE, ready=method == "DELETE", boot_id=machine.boot_id)
            if method == "DELETE":
                site.nodes.nodes[NODE]["metadata"]["labels"]["example.com/late"] = "yes"
        return respond(method, path, body)

    site.cluster.respond = meddle
    waiting = asyncio.ensure_future(site.up(machine))
    await until(lambda: f"put back {NODE}" in site.log)
    site.nodes.set_ready(NODE, ready=True, boot_id=machine.boot_id)
    await waiting
    assert sorted(met) == ["DELETE", "PATCH"]
    assert site.nodes.nodes[NODE]["metadata"]["labels"]["example.com/late"] == "yes"


async def test_a_record_of_another_machine_is_not_applied(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    marks = {"labels": {"example.com/rack": "1"}, "annotations": {}, "taints": [], "unschedulable": True}
    record = {"machine": "another/uuid", "uid": "gone", "marks": {**marks, "no_worker": False}}
    site.nodes.config_maps[RECORD] = {"data": {"record": json.dumps(record)}}
    await site.up(machine)
    assert site.nodes.nodes[NODE]["spec"] == {} and site.nodes.config_maps == {}
    assert "example.com/rack" not in site.nodes.nodes[NODE]["metadata"]["labels"]
    # One that nobody can read is not thrown away.
    site.nodes.config_maps[RECORD] = {"data": {"record": "{}"}}
    machine.disk = OLD
    site.states["worker-0"]["generation"] = OLD
    site.another_run()
    with pytest.raises(ProviderError, match=rf"ConfigMap kube-system/{RECORD} cannot be read .* by hand"):
        await site.up(machine)
    assert machine.installs == 1 and machine.running == "disk"


@kills
async def test_a_machine_that_left_its_live_system_by_itself(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    machine.statuses = [{"state": "installing"}] * 1000
    marked(site)
    await site.killed(machine, lambda: machine.running == "live")
    # Its power comes and goes after the installation: it boots its disk, under its former Node object.
    machine.disk, machine.chassis, machine.installs = NEW, "another chassis", 1
    await machine.start("disk")
    node = site.nodes.nodes[NODE]
    assert node["status"]["conditions"][0]["status"] == "Unknown"  # ovn-kubernetes refuses it
    site.another_run()
    await site.up(machine)
    is_restored(site, machine)
    order = [entry for entry in site.log if entry.split()[0] in ("remove", "boot", "reboot", "register")]
    assert order == [f"remove {NODE}", "boot disk worker-0", "reboot worker-0", f"register {NODE}"]
    assert machine.installs == 1


async def test_a_finalizer_that_holds_the_node(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    marked(site)["metadata"]["finalizers"] = ["example.com/keep"]
    with pytest.raises(
        ProviderError, match=rf"node {NODE} still exists after 10 s, because of its finalizers example.com/keep"
    ):
        await site.up(machine)
    assert machine.running == "live"
    del site.nodes.nodes[NODE]  # somebody saw to it
    site.another_run()
    await site.up(machine)
    is_restored(site, machine)


async def test_the_first_boot_of_openshift_is_waited_out(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    machine.rebases = True
    marked(site)
    await site.up(machine)
    is_restored(site, machine)
    # The check found the operating system of the release, in the boot after the one that put it in place.
    assert machine.first_boot == "restarted" and site.log.count("check worker-0") == 1
    assert site.states["worker-0"]["generation"] == NEW


async def test_a_check_that_is_cut_off_is_run_again(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    answer, cut = machine._run, list[str]()  # pyright: ignore[reportPrivateUsage]

    def restarts(command: str, given: str) -> tuple[int, str]:
        if command == "bash -s" and not cut:
            cut.append(machine.boot_id)
            machine.later("disk")
            return 1, "it says something wrong while it goes down"
        return answer(command, given)

    machine._run = restarts  # pyright: ignore[reportPrivateUsage]
    site.item = Installation(replace(PACE, look=0.3), site.opener)
    await site.up(machine)
    assert cut and machine.boot_id != cut[0] and site.log.count("check worker-0") == 1
