"""What must not happen to a machine whose state is not what it seems: quorum, turns, and machines of somebody else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from provider.errors import ProviderError
from tests.provider.fake_machine import FakeMachine, node_of
from tests.provider.installation_world import OLD, Run, World, until

CONTROL_PLANE: dict[str, Any] = {"role": "control-plane", "pool": "control-plane", "consent": True}


async def control_plane(it: World) -> list[FakeMachine]:
    return [await it.machine(f"control-plane-{number}", installed=OLD) for number in range(3)]


def guard(it: World, machine: FakeMachine) -> None:
    """Has a pod that may not go now, so that the machine cannot be drained."""
    it.nodes.pod("guard", node_of(machine.name))
    it.nodes.budgets["guard"] = "no"


async def goes_silent(machine: FakeMachine) -> None:
    """Does not answer any more, while its node is still Ready."""
    changed, machine.changed = machine.changed, lambda machine: None
    await machine.start("off")
    machine.changed = changed


def test_a_control_plane_machine_that_was_only_cordoned_still_counts(run: Run) -> None:
    async def test(it: World) -> None:
        machines = await control_plane(it)
        guard(it, machines[0])
        with pytest.raises(ProviderError, match="could not be drained"):
            await it.up(machines[0], **CONTROL_PLANE)
        it.nodes.budgets.clear()
        await machines[1].start("off")
        it.another_run()
        with pytest.raises(ProviderError, match=r"control-plane-0\S* is not taken down: .*control-plane-1\S* \(is not"):
            await it.up(machines[0], **CONTROL_PLANE)
        assert machines[0].installs == 0 and machines[0].disk == OLD

    run(test)


def test_the_others_are_asked_again_right_before_a_control_plane_machine_goes(run: Run) -> None:
    async def test(it: World) -> None:
        machines = await control_plane(it)
        guard(it, machines[0])
        waiting = asyncio.ensure_future(it.up(machines[0], drainTimeoutSeconds=20, **CONTROL_PLANE))
        await until(lambda: bool(it.log))
        await machines[1].start("off")
        it.nodes.budgets.clear()
        with pytest.raises(ProviderError, match=r"-0\S* is not taken down: while it was drained, .*-1\S* \(is not Rea"):
            await waiting
        assert machines[0].installs == 0 and machines[0].disk == OLD

    run(test)


def test_one_that_was_cordoned_and_is_gone_is_brought_back_first(run: Run) -> None:
    async def test(it: World) -> None:
        machines = await control_plane(it)
        guard(it, machines[2])
        with pytest.raises(ProviderError, match="could not be drained"):
            await it.up(machines[2], **CONTROL_PLANE)
        await machines[2].start("off")
        it.another_run()
        await asyncio.gather(*(it.up(machine, **CONTROL_PLANE) for machine in machines))
        assert [entry for entry in it.log if entry.startswith("install")] == [
            f"install control-plane-{number}" for number in (2, 0, 1)
        ]

    run(test)


def etcd_operator(*missing: str) -> dict[str, Any]:
    """What it says with members missing, in its own words."""
    gone = ", ".join(f"{node_of(name)} is unhealthy" for name in missing)
    count = f"{3 - len(missing)} of 3 members are available, {gone}" if missing else "3 members are available"
    text = f"EtcdMembersDegraded: {count}" if missing else "EtcdMembersDegraded: No unhealthy members found"
    return {
        "status": {
            "conditions": [
                {"type": "Available", "status": "True", "message": f"StaticPods: 3\nEtcdMembersAvailable: {count}"},
                {"type": "Degraded", "status": str(len(missing) > 1), "message": text},
            ]
        }
    }


def test_a_control_plane_machine_stays_while_etcd_misses_another_member(run: Run) -> None:
    async def test(it: World) -> None:
        machines = await control_plane(it)
        for operator, told in (
            (etcd_operator("control-plane-1"), r"etcd \(2 of 3 members are available, control-plane-1"),
            ({}, r"etcd \(is not Available: its operator does not tell why\)"),
        ):
            it.nodes.etcd = lambda operator=operator: operator
            it.another_run()
            with pytest.raises(ProviderError, match=rf"control-plane-0\S* is not taken down: .*{told}"):
                await it.up(machines[0], **CONTROL_PLANE)
        assert it.log == []

    run(test)


def test_a_control_plane_machine_is_back_when_etcd_has_its_member(run: Run) -> None:
    async def test(it: World) -> None:
        machines = await control_plane(it)
        it.nodes.etcd = lambda: etcd_operator(*(["control-plane-0"] if "install control-plane-0" in it.log else []))
        text = (
            r"-0\S* was installed and is Ready, but etcd is not whole after 3 s: 2 of 3 .*taken out of etcd.*cordoned"
        )
        with pytest.raises(ProviderError, match=text):
            await it.up(machines[0], timeoutSeconds=3, **CONTROL_PLANE)
        # No other one goes before somebody saw to it; then the same command goes on.
        it.another_run()
        with pytest.raises(ProviderError, match=r"control-plane-1\S* is not taken down: .*etcd \(2 of 3"):
            await it.up(machines[1], **CONTROL_PLANE)
        it.nodes.etcd = etcd_operator
        it.another_run()
        await it.up(machines[0], **CONTROL_PLANE)
        assert it.log[-1] == f"uncordon {node_of('control-plane-0')}" and machines[0].installs == 1

    run(test)


def test_a_control_plane_machine_that_etcd_misses_is_brought_back(run: Run) -> None:
    async def test(it: World) -> None:
        machines = await control_plane(it)
        guard(it, machines[0])
        with pytest.raises(ProviderError, match=r"guard: .*leave the budget as it is"):
            await it.up(machines[0], **CONTROL_PLANE)
        await machines[0].start("off")
        it.nodes.etcd = lambda: etcd_operator(*(["control-plane-0"] if not machines[0].installs else []))
        it.another_run()
        await it.up(machines[0], **CONTROL_PLANE)
        assert machines[0].installs == 1

    run(test)


def test_a_worker_that_is_silent_but_ready_waits_for_its_turn(run: Run) -> None:
    async def test(it: World) -> None:
        machine, other = await it.machine("worker-0", installed=OLD), await it.machine("worker-1", installed=OLD)
        await other.start("off")
        await goes_silent(machine)
        with pytest.raises(ProviderError, match=r"worker-0\S* is not taken down: .*worker-1\S* \(is not Ready\)"):
            await it.up(machine)
        assert it.log == [] and machine.installs == 0

    run(test)


def test_a_node_that_boots_again_before_its_kubelet_starts(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        changed, machine.changed = machine.changed, lambda machine: None
        waiting = asyncio.ensure_future(it.up(machine))
        await until(lambda: "check worker-0" in it.log)
        first, machine.changed = machine.boot_id, changed
        await machine.start("disk")  # into the operating system of the cluster's release
        await waiting
        assert it.nodes.nodes[node_of("worker-0")]["status"]["nodeInfo"]["bootID"] == machine.boot_id != first

    run(test)
