"""Machines whose generation changed: drain, install, check, uncordon, one after the other."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from metal_ipi.provider.errors import InvalidInputs, ProviderError
from metal_ipi.provider.values import UNKNOWN
from tests.provider.fake_machine import CLUSTER, FakeMachine, node_of
from tests.provider.harness import Harness, Resource, until
from tests.provider.installation_site import CONTROL_PLANE, NEW, OLD, Site


def ours(log: list[str], *names: str) -> list[str]:
    return [entry for entry in log if any(name in entry for name in names)]


async def test_in_order(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    for name, owner, phase in (("web", "ReplicaSet", "Running"), ("agent", "DaemonSet", "Running"),
                               ("job", "Job", "Succeeded"), ("lonely", None, "Running")):  # fmt: skip
        site.nodes.pod(name, node_of("worker-0"), owner=owner, phase=phase)
    site.nodes.pod("static", node_of("worker-0"))["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    site.nodes.pod("elsewhere", node_of("worker-1"))
    state = await site.up(machine, preRebootCommands=["touch /var/tmp/x"])
    assert sorted(site.log[1:3]) == ["evict lonely", "evict web"]  # both are asked to go at once
    assert [*site.log[:1], *site.log[3:]] == [
        f"cordon {node_of('worker-0')}",
        "pre-reboot worker-0: touch /var/tmp/x",
        "kexec worker-0",
        "install worker-0",
        f"remove {node_of('worker-0')}",
        "boot disk worker-0",
        "reboot worker-0",
        f"register {node_of('worker-0')}",
        "check worker-0",
    ]
    assert (state["generation"], state["via"]) == (NEW, "kexec")
    assert site.nodes.nodes[node_of("worker-0")]["spec"] == {}
    assert [pod["metadata"]["name"] for pod in site.nodes.pods] == ["agent", "job", "static", "elsewhere"]
    assert site.uploaded() == [] and machine.installs == 1
    text = f"these pods of {node_of('worker-0')} have no controller that replaces them: shop/lonely"
    assert text in site.told.messages


async def test_from_outside_where_the_node_does_not_answer(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    await machine.start("off")
    assert (await site.up(machine))["via"] == "network boot"
    assert site.log[1:3] == ["network boot worker-0", "install worker-0"]
    assert site.log[-1] == "check worker-0"


async def test_by_the_users_commands_where_nothing_else_is_left(
    site: Site, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "opens the state")
    machine = await site.machine("worker-0", installed=OLD)
    machine.fails["kexec"] = "no kexec"
    site.driver.silent = True
    seen = tmp_path / "seen"
    told = "$MACHINE $DOMAIN $NODE $MAC $ADDRESS $BMC_ADDRESS $BMC_USERNAME$PULUMI_CONFIG_PASSPHRASE"
    command = f'echo "{told}" >{seen}; echo "$BMC_PASSWORD"; exit 4'
    with pytest.raises(ProviderError, match=r"command 2 of .*pxeCommands` ended with 4.*said: \[secret\]") as caught:
        await site.up(machine, pxeCommands=["true", command])
    assert "pass\n" not in str(caught.value) and "silent" not in str(caught.value)
    assert seen.read_text() == (
        f"worker-0 {CLUSTER} {node_of('worker-0')} {machine.mac} 127.0.0.1 https://10.0.0.1 operator\n"
    )
    assert "worker-0/uuid (BMC https://10.0.0.1) does not answer" in str(caught.value)
    # The node was left cordoned, and the next run goes on.
    assert site.nodes.nodes[node_of("worker-0")]["spec"] == {"unschedulable": True}
    site.another_run()
    ordered = tmp_path / "ordered"

    async def watch() -> None:
        await until(ordered.exists)
        machine.later("live")

    watching = asyncio.ensure_future(watch())
    state = await site.up(machine, pxeCommands=[f"touch {ordered}"])
    await watching
    assert state["via"] == "pxe-commands" and site.log[-1] == "check worker-0"
    assert "BMC" in str(site.told.messages)  # its boot from the disk could not be asked for: said, and gone on


async def test_a_budget_that_does_not_allow_it(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    site.nodes.pod("web", node_of("worker-0"))
    site.nodes.budgets["web"] = "The disruption budget shop-web needs 1 healthy pods and has 1 currently"
    with pytest.raises(ProviderError, match=r"not be drained within 10 s: shop/web: .*budget shop-web needs 1"):
        await site.up(machine)
    assert site.log == [f"cordon {node_of('worker-0')}"]
    assert site.states["worker-0"]["generation"] == OLD
    site.another_run()
    waiting = asyncio.ensure_future(site.up(machine))
    await until(lambda: any("draining" in message for message in site.told.messages))
    del site.nodes.budgets["web"]
    await waiting
    assert site.log[1:3] == ["evict web", "kexec worker-0"] and site.log[-1] == "check worker-0"


async def test_a_check_that_fails_ends_the_roll(site: Site) -> None:
    machines = [await site.machine(f"worker-{number}", installed=OLD) for number in range(3)]
    machines[0].fails["look-around"] = "wrong console"
    found = await asyncio.gather(*(site.up(machine) for machine in reversed(machines)), return_exceptions=True)
    third, second, first = map(str, found)
    assert "check failed: `bash -s` ended with 1: wrong console" in first and "stays as it is" in first
    for text in (second, third):
        assert f"is not installed, because {node_of('worker-0')} failed" in text
    assert ours(site.log, "worker-1", "worker-2") == []
    # Set right, the one that failed comes first, and the others follow.
    site.another_run()
    machines[0].fails.clear()
    del site.log[:]
    await asyncio.gather(*(site.up(machine) for machine in reversed(machines)))
    assert ours(site.log, "cordon", "check") == [
        "check worker-0",
        f"cordon {node_of('worker-1')}",
        "check worker-1",
        f"cordon {node_of('worker-2')}",
        "check worker-2",
    ]
    assert [machine.installs for machine in machines] == [1, 1, 1]


def away_at_once(log: list[str]) -> int:
    """How many were away at the same time, at most: a node comes back after its check."""
    now = most = 0
    for entry in ours(log, "cordon", "check"):
        now += -1 if entry.startswith("check") else 1
        most = max(most, now)
    return most


@pytest.mark.parametrize("at_once", [1, 2])
async def test_a_roll(site: Site, at_once: int) -> None:
    machines = [await site.machine(f"worker-{number}", installed=OLD) for number in range(4)]
    await asyncio.gather(*(site.up(machine, maxUnavailable=at_once) for machine in reversed(machines)))
    assert away_at_once(site.log) == at_once
    begun = [entry for entry in site.log if entry.startswith("cordon")]
    assert begun == [f"cordon {node_of(machine.name)}" for machine in machines]
    assert [machine.installs for machine in machines] == [1, 1, 1, 1]


async def test_a_node_that_is_away_already_counts(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    broken = await site.machine("worker-1", installed=NEW)
    await broken.start("off")
    with pytest.raises(ProviderError, match=r"worker-0\.\S+ is not installed: .*worker-1\.\S+ \(is not Ready\)"):
        await site.up(machine)
    assert site.log == []
    site.another_run()
    await site.up(machine, maxUnavailable=2)
    # One that is away itself takes nobody down, and comes first.
    del site.log[:]
    another = await site.machine("worker-2", installed=OLD)
    site.another_run()
    broken.disk = OLD
    site.states["worker-1"]["generation"] = OLD
    await asyncio.gather(site.up(another), site.up(broken))
    assert [entry for entry in site.log if entry.startswith("install")] == ["install worker-1", "install worker-2"]


async def test_a_node_that_has_to_wait_for_other_clusters_stays_as_it_is(site: Site) -> None:
    machines = [await site.machine(f"worker-{number}", installed=OLD) for number in range(2)]
    asked = list[str]()

    async def may_leave(hostname: str) -> str:
        asked.append(hostname)
        assert len(asked) > 4 or site.log == []
        return "wait" if len(asked) < 4 else ""

    site.may_leave = may_leave
    await asyncio.gather(*(site.up(machine) for machine in machines))
    assert len(asked) == 5 and set(asked) == {"worker-0", "worker-1"} and "wait" in site.told.messages
    assert away_at_once(site.log) == 1 and [machine.installs for machine in machines] == [1, 1]
    # One that is away already is not held up.
    away = await site.machine("worker-2", installed=OLD)
    await away.start("off")
    await site.up(away)
    assert len(asked) == 5 and away.installs == 1


async def test_a_control_plane_machine_needs_consent(site: Site) -> None:
    machine, *_ = await site.control_plane()
    text = r"control plane machine control-plane-0 .*`metal-ipi:reprovision\.consent`"
    with pytest.raises(InvalidInputs, match=text):
        await site.up(machine, **CONTROL_PLANE)
    inputs = site.inputs(machine, **CONTROL_PLANE)
    state = {**inputs, **site.states[machine.name]}
    with pytest.raises(InvalidInputs, match=text):
        site.item.preview(site.context(machine.name), state, inputs)
    # One that was never installed may be; so may one that stays as it is.
    site.item.preview(site.context(machine.name), {**state, "generation": ""}, inputs)
    site.item.preview(site.context(machine.name), {**state, "generation": NEW}, inputs)
    site.item.preview(site.context(machine.name), state, {**inputs, "consent": True})
    site.item.preview(site.context(machine.name), state, {**inputs, "members": [UNKNOWN]})
    assert site.log == []


async def test_a_control_plane_machine_that_is_kept(site: Site) -> None:
    machine, *_ = await site.control_plane()
    state = await site.up(machine, **CONTROL_PLANE, keep=True)
    assert state["generation"] == OLD and site.log == []
    inputs = site.inputs(machine, **CONTROL_PLANE, keep=True)
    old, context = {**inputs, **state}, site.context(machine.name)
    found = site.item.diff(context, old, inputs)
    assert found.changes == {} and site.item.preview(context, old, inputs) == state
    assert re.search(
        rf"machine control-plane-0 stays as it is: it runs generation {OLD}, and should run {NEW}.*\.consent",
        found.warning,
    )
    unknown = site.item.diff(context, old, {**inputs, "generation": UNKNOWN})
    assert unknown.changes == {} and "should run another" in unknown.warning
    # Workers, those that may be, another machine, and what runs what it should are not kept.
    for change in ({"role": "worker"}, {"consent": True}, {"machineId": "another"}, {"generation": OLD}):
        found = site.item.diff(context, old, {**inputs, **change})
        assert found.warning == "" and bool(found.changes) == ("generation" not in change)
    assert (await site.up(machine, **CONTROL_PLANE, keep=True, consent=True))["generation"] == NEW


async def test_a_warning_goes_to_the_engine() -> None:
    harness = Harness()
    old = {"generation": OLD, "hostname": "c-0", "role": "control-plane", "keep": True}
    item = Resource(harness, "Installation", id="id", state=old)
    assert await item.changes({**old, "generation": NEW}) == []
    assert harness.log.warnings == harness.log.messages and "c-0 stays as it is" in harness.log.warnings[0]


async def test_control_plane_machines_go_one_at_a_time(site: Site) -> None:
    machines = await site.control_plane()
    more: dict[str, Any] = {**CONTROL_PLANE, "consent": True, "maxUnavailable": 3}
    await asyncio.gather(*(site.up(machine, **more) for machine in machines))
    assert away_at_once(site.log) == 1 and [machine.installs for machine in machines] == [1, 1, 1]


async def test_never_beyond_quorum(site: Site) -> None:
    machines = await site.control_plane()
    await machines[2].start("off")
    more: dict[str, Any] = {**CONTROL_PLANE, "consent": True, "maxUnavailable": 3}
    with pytest.raises(ProviderError, match=r"control-plane-0\S* is not installed: .*control-plane-2\S* \(is not R"):
        await site.up(machines[0], **more)
    # One that is silent may hold what the others need.
    await machines[1].start("off")
    site.another_run()
    with pytest.raises(ProviderError, match=r"control-plane-1\S* is not installed: .*control-plane-2"):
        await site.up(machines[1], **more)
    assert site.log == []
    pair = [node_of(machine.name) for machine in machines[:2]]
    with pytest.raises(InvalidInputs, match="of 2 members no quorum would remain"):
        await site.up(machines[0], **{**more, "members": pair})
    # Whoever is told to consent first would do so in vain.
    alone = {**CONTROL_PLANE, "members": pair[:1]}
    for consent in (False, True):
        with pytest.raises(InvalidInputs, match="again: it is the only member, and no quorum would remain"):
            await site.up(machines[0], **{**alone, "consent": consent})


async def test_power_lost_in_the_middle_is_caught_from_outside(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    machine.power_losses = 1
    state = await site.up(machine)
    assert ours(site.log, "kexec", "power", "network") == [
        "kexec worker-0",
        "power loss worker-0",
        "network boot worker-0",
    ]
    assert state["via"] == "network boot" and site.log[-1] == "check worker-0"


async def test_power_lost_after_the_installation_is_switched_on_again(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    usual, boots = machine.changed, list[str]()

    def changed(machine: FakeMachine) -> None:
        """The first time from its new disk it goes off before the cluster has seen it."""
        if machine.running == "disk":
            boots.append(machine.boot_id)
        if len(boots) == 1 and machine.running == "disk":
            machine.later("off")
        else:
            usual(machine)

    machine.changed = changed
    await site.up(machine)
    assert ours(site.log, "install", "restart") == ["install worker-0", "restart worker-0"] and machine.installs == 1
    assert "worker-0 (BMC https://10.0.0.1) lost its power: it is switched on" in site.told.messages
    assert len(boots) == 2 and site.log.count("check worker-0") == 1


async def test_a_failing_command_before_the_reboot_leaves_the_machine_as_it_is(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    machine.fails["copy the secrets"] = "no space"
    with pytest.raises(ProviderError, match=r"pre-reboot command 2 failed on worker-0: .*no space"):
        await site.up(machine, preRebootCommands=["true", "copy the secrets"])
    assert site.log == [f"cordon {node_of('worker-0')}", "pre-reboot worker-0: true"]
    assert machine.running == "disk" and machine.disk == OLD


async def test_without_the_cluster(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    with pytest.raises(ProviderError, match=r"its node worker-0\S* cannot be drained: .*set `credentials`"):
        await site.up(machine, credentials=None)
    gone = site.silent_cluster()
    with pytest.raises(ProviderError, match=r"cannot be drained: the cluster at https://127\.0\.0\.1:1 cannot be"):
        await site.up(machine, **gone)
    assert site.log == []
    # Nobody misses a node of a cluster that never was.
    machine.joined = False
    await site.up(machine, **gone)
    assert site.log == [
        "kexec worker-0",
        "install worker-0",
        "boot disk worker-0",
        "reboot worker-0",
        "check worker-0",
    ]


async def test_ready_means_ready_since_it_was_installed(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    changed, boot = machine.changed, machine.boot_id

    def late(it_: FakeMachine) -> None:
        """The cluster goes on to believe what the kubelet told before."""

    machine.changed = late
    waiting = asyncio.ensure_future(site.up(machine))
    await until(lambda: "check worker-0" in site.log)
    # Another kubelet's word of another boot is not its own.
    site.nodes.add(node_of("worker-0"))
    site.nodes.set_ready(node_of("worker-0"), ready=True, boot_id=boot)
    await asyncio.sleep(0.3)
    assert not waiting.done() and site.log[-1] == "check worker-0"
    changed(machine)
    await waiting
