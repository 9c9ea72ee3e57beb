"""The Node object of a machine that is installed again: removed, made anew, and given back what people put on it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from provider.errors import ProviderError
from provider.installation import Installation
from tests.provider.fake_machine import FakeMachine, node_of
from tests.provider.harness import kills, until
from tests.provider.installation_world import NEW, OLD, PACE, Run, World

NODE = node_of("worker-0")
RECORD = f"metal-ipi-node-{NODE}"
CHASSIS = "k8s.ovn.org/node-chassis-id"
TAINT = {"key": "example.com/gpu", "effect": "NoSchedule"}


def marked(it: World) -> dict[str, Any]:
    """The node, with what people put on it and what others did."""
    node = it.nodes.nodes[NODE]
    node["metadata"]["labels"].update({"example.com/rack": "7", "node-role.kubernetes.io/infra": ""})
    node["metadata"]["annotations"].update({"example.com/owner": "shop", "node.alpha.kubernetes.io/ttl": "15"})
    node["spec"]["taints"] = [TAINT, {"key": "UpdateInProgress", "effect": "PreferNoSchedule"}]
    return node


def is_restored(it: World, machine: FakeMachine) -> None:
    """What people put there is back, once, and nothing else."""
    node = it.nodes.nodes[NODE]
    assert node["metadata"]["labels"] == {
        "kubernetes.io/hostname": NODE,
        "node-role.kubernetes.io/worker": "",
        "node-role.kubernetes.io/infra": "",
        "example.com/rack": "7",
    }
    assert node["metadata"]["annotations"] == {CHASSIS: machine.chassis, "example.com/owner": "shop"}
    assert node["spec"] == {"taints": [TAINT]}
    assert it.nodes.config_maps == {}


def test_it_is_another_object_with_what_people_put_on_the_former(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        before = marked(it)["metadata"]["uid"]
        await it.up(machine)
        is_restored(it, machine)
        assert it.nodes.nodes[NODE]["metadata"]["uid"] != before
        # After the drain, before the machine comes back.
        order = [entry for entry in it.log if entry.split()[0] in ("cordon", "install", "remove", "reboot", "put")]
        assert order == [f"cordon {NODE}", "install worker-0", f"remove {NODE}", "reboot worker-0", f"put back {NODE}"]
        told = [message for message in it.told.messages if "has again what people put on it" in message]
        assert told == [
            f"node {NODE} has again what people put on it: labels example.com/rack, node-role.kubernetes.io/infra; "
            "annotations example.com/owner; taints example.com/gpu:NoSchedule"
        ]

    run(test)


def test_an_administrators_cordon_comes_back(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        it.nodes.nodes[NODE]["spec"]["unschedulable"] = True
        await it.up(machine)
        assert it.nodes.nodes[NODE]["spec"] == {"unschedulable": True}
        assert f"node {NODE} stays cordoned: it was before it was installed again" in it.told.messages

    run(test)


@kills
@pytest.mark.parametrize(
    "moment", [f"remove {NODE}", "boot disk worker-0", "reboot worker-0", f"register {NODE}", "check worker-0"]
)
def test_killed_right_after(run: Run, moment: str) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        marked(it)
        before = it.states["worker-0"]
        waiting = asyncio.ensure_future(it.up(machine))
        await until(lambda: moment in it.log)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        # The engine was killed, too: nothing of that run is in the state, also where it had come to its end.
        it.states["worker-0"] = before
        assert before["generation"] == OLD
        it.another_run()
        await it.up(machine)
        is_restored(it, machine)
        assert machine.installs == 1 and it.log.count(f"remove {NODE}") == 1

    run(test)


@kills
def test_killed_while_an_installation_that_was_not_finished_is_gone_on_with(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        marked(it)
        it.states["worker-0"] = {"generation": "", "installedAt": None, "device": None, "via": None}
        waiting = asyncio.ensure_future(it.up(machine))
        await until(lambda: f"remove {NODE}" in it.log)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        it.another_run()
        await it.up(machine)
        is_restored(it, machine)

    run(test)


def test_what_changed_meanwhile_is_what_counts(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        marked(it)
        it.nodes.pod("web", NODE)
        it.nodes.budgets["web"] = "no"
        with pytest.raises(ProviderError, match="could not be drained"):
            await it.up(machine)
        it.nodes.nodes[NODE]["metadata"]["labels"]["example.com/rack"] = "8"
        it.nodes.budgets.clear()
        it.another_run()
        await it.up(machine)
        assert it.nodes.nodes[NODE]["metadata"]["labels"]["example.com/rack"] == "8"
        assert it.nodes.nodes[NODE]["spec"] == {"taints": [TAINT]}  # our own cordon is not taken for somebody's

    run(test)


def test_somebody_changes_the_node_at_the_same_moment(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        marked(it)
        respond, met = it.cluster.respond, list[str]()

        def meddle(method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
            """Once before it is removed, and once before it is given back its marks."""
            if path == f"/api/v1/nodes/{NODE}" and "kexec worker-0" in it.log and method not in ("GET", *met):
                met.append(method)
                it.nodes.set_ready(NODE, ready=method == "DELETE", boot_id=machine.boot_id)
                if method == "DELETE":
                    it.nodes.nodes[NODE]["metadata"]["labels"]["example.com/late"] = "yes"
            return respond(method, path, body)

        it.cluster.respond = meddle
        waiting = asyncio.ensure_future(it.up(machine))
        await until(lambda: f"put back {NODE}" in it.log)
        it.nodes.set_ready(NODE, ready=True, boot_id=machine.boot_id)
        await waiting
        assert sorted(met) == ["DELETE", "PATCH"]
        assert it.nodes.nodes[NODE]["metadata"]["labels"]["example.com/late"] == "yes"

    run(test)


def test_a_record_of_another_machine_is_not_applied(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        marks = {"labels": {"example.com/rack": "1"}, "annotations": {}, "taints": [], "unschedulable": True}
        record = {"machine": "another/uuid", "uid": "gone", "marks": {**marks, "no_worker": False}}
        it.nodes.config_maps[RECORD] = {"data": {"record": json.dumps(record)}}
        await it.up(machine)
        assert it.nodes.nodes[NODE]["spec"] == {} and it.nodes.config_maps == {}
        assert "example.com/rack" not in it.nodes.nodes[NODE]["metadata"]["labels"]
        # One that nobody can read is not thrown away.
        it.nodes.config_maps[RECORD] = {"data": {"record": "{}"}}
        machine.disk = OLD
        it.states["worker-0"]["generation"] = OLD
        it.another_run()
        with pytest.raises(ProviderError, match=rf"ConfigMap kube-system/{RECORD} cannot be read .* by hand"):
            await it.up(machine)
        assert machine.installs == 1 and machine.running == "disk"

    run(test)


@kills
def test_a_machine_that_left_its_live_system_by_itself(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        machine.statuses = [{"state": "installing"}] * 1000
        marked(it)
        waiting = asyncio.ensure_future(it.up(machine))
        await until(lambda: machine.running == "live")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        # Its power comes and goes after the installation: it boots its disk, under its former Node object.
        machine.disk, machine.chassis, machine.installs = NEW, "another chassis", 1
        await machine.start("disk")
        node = it.nodes.nodes[NODE]
        assert node["status"]["conditions"][0]["status"] == "Unknown"  # ovn-kubernetes refuses it
        it.another_run()
        await it.up(machine)
        is_restored(it, machine)
        order = [entry for entry in it.log if entry.split()[0] in ("remove", "boot", "reboot", "register")]
        assert order == [f"remove {NODE}", "boot disk worker-0", "reboot worker-0", f"register {NODE}"]
        assert machine.installs == 1

    run(test)


def test_a_finalizer_that_holds_the_node(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        marked(it)["metadata"]["finalizers"] = ["example.com/keep"]
        with pytest.raises(
            ProviderError, match=rf"node {NODE} is not gone after 2 s: finalizers example.com/keep hold it"
        ):
            await it.up(machine)
        assert machine.running == "live"
        del it.nodes.nodes[NODE]  # somebody saw to it
        it.another_run()
        await it.up(machine)
        is_restored(it, machine)

    run(test)


def test_the_first_boot_of_openshift_is_waited_out(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        machine.rebases = True
        marked(it)
        await it.up(machine)
        is_restored(it, machine)
        # The check found the operating system of the release, in the boot after the one that put it in place.
        assert machine.first_boot == "restarted" and it.log.count("check worker-0") == 1
        assert it.states["worker-0"]["generation"] == NEW

    run(test)


def test_a_check_that_is_cut_off_is_run_again(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        answer, cut = machine._run, list[str]()  # pyright: ignore[reportPrivateUsage]

        def restarts(command: str, given: str) -> tuple[int, str]:
            if command == "bash -s" and not cut:
                cut.append(machine.boot_id)
                machine.later("disk")
                return 1, "it says something wrong while it goes down"
            return answer(command, given)

        machine._run = restarts  # pyright: ignore[reportPrivateUsage]
        it.item = Installation(replace(PACE, look=0.3), it.opener)
        await it.up(machine)
        assert cut and machine.boot_id != cut[0] and it.log.count("check worker-0") == 1

    run(test)
