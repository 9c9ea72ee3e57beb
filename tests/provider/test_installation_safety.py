"""What must not happen to a machine whose state is not what it seems: quorum, turns, and machines of somebody else."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.provider import backoff
from metal_ipi.provider.errors import InitFailed, ProviderError, RemoteError
from metal_ipi.provider.gates.ssh import WrongHostKey, run
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.installation.machine import Installed, Installing, look
from tests.provider.fake_etcd import FakeEtcd, etcd_operator
from tests.provider.fake_machine import STRANGER, FakeMachine, node_of
from tests.provider.harness import until
from tests.provider.installation_site import CONTROL_PLANE, DIRECTORY, NEW, OLD, PACE, UNFINISHED, Site

CONSENTED: dict[str, Any] = {**CONTROL_PLANE, "consent": True}


def guard(site: Site, machine: FakeMachine) -> None:
    """Has a pod that may not go now, so that the machine cannot be drained."""
    site.nodes.pod("guard", node_of(machine.name))
    site.nodes.budgets["guard"] = "no"


async def goes_silent(machine: FakeMachine) -> None:
    """Does not answer any more, while its node is still Ready."""
    changed, machine.changed = machine.changed, lambda machine: None
    await machine.start("off")
    machine.changed = changed


async def test_a_control_plane_machine_that_was_only_cordoned_still_counts(site: Site) -> None:
    machines = await site.control_plane()
    guard(site, machines[0])
    with pytest.raises(ProviderError, match="could not be drained"):
        await site.up(machines[0], **CONSENTED)
    site.nodes.budgets.clear()
    await machines[1].start("off")
    site.another_run()
    with pytest.raises(
        ProviderError, match=r"control-plane-0\S* is not installed: .*control-plane-1\S* \(is not .*etcd can spare"
    ):
        await site.up(machines[0], **CONSENTED)
    assert machines[0].installs == 0 and machines[0].disk == OLD


async def test_the_others_are_asked_again_right_before_a_control_plane_machine_goes(site: Site) -> None:
    machines = await site.control_plane()
    guard(site, machines[0])
    waiting = asyncio.ensure_future(site.up(machines[0], drainTimeoutSeconds=200, **CONSENTED))
    await until(lambda: bool(site.log))
    await machines[1].start("off")
    site.nodes.budgets.clear()
    with pytest.raises(ProviderError, match=r"-0\S* is not installed: while it was drained, .*-1\S* \(is not Rea"):
        await waiting
    assert machines[0].installs == 0 and machines[0].disk == OLD


async def test_one_that_was_cordoned_and_is_gone_is_brought_back_first(site: Site) -> None:
    machines = await site.control_plane()
    guard(site, machines[2])
    with pytest.raises(ProviderError, match="could not be drained"):
        await site.up(machines[2], **CONSENTED)
    await machines[2].start("off")
    site.another_run()
    await asyncio.gather(*(site.up(machine, **CONSENTED) for machine in machines))
    assert [entry for entry in site.log if entry.startswith("install")] == [
        f"install control-plane-{number}" for number in (2, 0, 1)
    ]


def restarting() -> dict[str, Any]:
    """What it says while it brings all members to a new revision."""
    operator = etcd_operator()
    text = "NodeInstallerProgressing: 1 nodes are at revision 6; 2 nodes are at revision 7"
    operator["status"]["conditions"].append({"type": "Progressing", "status": "True", "message": text})
    return operator


async def test_a_control_plane_machine_stays_while_etcd_misses_another_member(site: Site) -> None:
    machines = await site.control_plane()
    for operator, told in (
        (etcd_operator(node_of("control-plane-1")), r"etcd \(2 of 3 members are available, control-plane-1"),
        ({}, r"etcd \(is not Available: its operator gives no reason\)"),
        (
            restarting(),
            r"etcd \(is being restarted member by member: NodeInstallerProgressing: 1 nodes are at revision 6",
        ),
        (etcd_operator(members=2), r"etcd \(it has 2 members, and should have 3\)"),
    ):
        site.nodes.etcd = lambda operator=operator: operator
        site.another_run()
        with pytest.raises(ProviderError, match=rf"control-plane-0\S* is not installed: .*{told}"):
            await site.up(machines[0], **CONSENTED)
    assert site.log == []


async def test_a_control_plane_machine_is_back_when_etcd_has_its_member(site: Site) -> None:
    machines = await site.control_plane()
    etcd = FakeEtcd(world=site, machines=machines)
    # Its new member is added, and does not become healthy.
    site.nodes.etcd = lambda: etcd_operator(
        *([node_of("control-plane-0")] if "reboot control-plane-0" in site.log else [])
    )
    text = r"-0\S* was installed and is Ready, but etcd does not have all .* 30 s: 2 of 3 .*has to be removed:\n.*\n"
    with pytest.raises(ProviderError, match=text):
        await site.up(machines[0], timeoutSeconds=30, **etcd.inputs(machines[0]))
    # No other one goes before somebody saw to it; then run the same command again.
    site.another_run()
    with pytest.raises(ProviderError, match=r"control-plane-1\S* is not installed: .*etcd \(2 of 3"):
        await site.up(machines[1], **CONSENTED)
    site.nodes.etcd = etcd_operator
    site.another_run()
    await site.up(machines[0], **CONSENTED)
    assert site.log[-1] == "check control-plane-0" and machines[0].installs == 1


async def test_a_control_plane_machine_that_etcd_misses_is_brought_back(site: Site) -> None:
    machines = await site.control_plane()
    guard(site, machines[0])
    with pytest.raises(ProviderError, match=r"guard: .*leave the disruption budget as it is"):
        await site.up(machines[0], **CONSENTED)
    etcd = FakeEtcd(world=site, machines=machines)
    await machines[0].start("off")
    site.another_run()
    await site.up(machines[0], **etcd.inputs(machines[0]))
    assert machines[0].installs == 1 and all(etcd.healthy(member) for member in etcd.members)


async def test_a_worker_that_is_silent_but_ready_waits_for_its_turn(site: Site) -> None:
    machine, other = await site.machine("worker-0", installed=OLD), await site.machine("worker-1", installed=OLD)
    await other.start("off")
    await goes_silent(machine)
    with pytest.raises(ProviderError, match=r"worker-0\S* is not installed: .*worker-1\S* \(is not Ready\)"):
        await site.up(machine)
    assert site.log == [] and machine.installs == 0


async def test_a_node_that_boots_again_before_its_kubelet_starts(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    changed, machine.changed = machine.changed, lambda machine: None
    waiting = asyncio.ensure_future(site.up(machine))
    await until(lambda: "check worker-0" in site.log)
    first, machine.changed = machine.boot_id, changed
    await machine.start("disk")  # into the operating system of the cluster's release
    await waiting
    assert site.nodes.nodes[node_of("worker-0")]["status"]["nodeInfo"]["bootID"] == machine.boot_id != first


async def test_an_unfinished_installation_of_a_silent_machine_asks_the_cluster_first(site: Site) -> None:
    machines = await site.control_plane()
    site.states["control-plane-0"] = dict(UNFINISHED)
    await machines[0].start("off")
    with pytest.raises(InitFailed, match=r"control plane machine control-plane-0 .*`metal-ipi:reprovision\.consent"):
        await site.up(machines[0], **{**CONSENTED, "consent": False})
    await machines[1].start("off")
    with pytest.raises(InitFailed, match=r"control-plane-0\S* is not installed: .*control-plane-1"):
        await site.up(machines[0], **CONSENTED)
    assert site.log == [] and machines[0].disk == OLD
    # Made anew, it is asked as well.
    del site.states["control-plane-0"]
    with pytest.raises(InitFailed, match=r"control-plane-0\S* is not installed"):
        await site.up(machines[0], **CONSENTED)
    assert site.log == []


async def test_a_control_plane_machine_that_was_installed_is_left_alone_while_nobody_can_be_asked(site: Site) -> None:
    machine = await site.machine("control-plane-0")
    gone = {**CONSENTED, **site.silent_cluster()}

    async def restart(machine_id: str) -> None:
        raise RemoteError(f"{machine_id} cannot be restarted")

    site.driver.restart = restart  # type: ignore[method-assign]
    machine.fails["systemctl reboot"] = "no"
    with pytest.raises(InitFailed, match="cannot be restarted"):
        await site.up(machine, **gone)
    assert site.states["control-plane-0"]["generation"] == "" and site.states["control-plane-0"]["installedAt"]
    await machine.start("off")
    site.upload(machine)
    site.another_run()
    text = r"control-plane-0 is not installed again: it was installed before and does not answer .*127\.0\.0\.1:1"
    with pytest.raises(InitFailed, match=text):
        await site.up(machine, **gone)
    assert site.log.count("network boot control-plane-0") == 1 and site.states["control-plane-0"]["installedAt"]
    # What was never installed has no cluster to ask.
    site.states["control-plane-0"] = dict(UNFINISHED)
    machine.fails.clear()
    site.another_run()
    assert (await site.up(machine, **gone))["via"] == "network boot"


@pytest.mark.parametrize(
    ("sudo", "certificate", "joined"),
    [('shift; exec "$@"', True, True), ('shift; exec "$@"', False, False), ("exit 1", False, True)],
)
async def test_a_machine_that_does_not_tell_may_have_joined(
    site: Site, tmp_path: Path, sudo: str, certificate: bool, joined: bool
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sudo").write_text(f"#!/bin/sh\n{sudo}\n")
    (programs / "sudo").chmod(0o755)
    pem = tmp_path / "kubelet.pem"
    if certificate:
        pem.symlink_to("gone")
    machine = await site.machine("worker-0", installed=OLD)
    answer = machine._run  # type: ignore[attr-defined]

    def really(command: str, given: str) -> tuple[int, str]:
        if "kubelet-client-current.pem" not in command:
            return answer(command, given)
        command = command.replace("/var/lib/kubelet/pki/kubelet-client-current.pem", str(pem))
        path = f"{programs}:{os.environ['PATH']}"
        done = subprocess.run(["sh", "-c", command], env={"PATH": path}, capture_output=True, text=True, check=True)
        return 0, done.stdout

    machine._run = really  # type: ignore[attr-defined,method-assign]
    seen = await look(Job.read(site.inputs(machine)))
    assert isinstance(seen, Installed) and seen.joined is joined


async def test_a_machine_that_answers_as_somebody_else_is_not_reset(site: Site) -> None:
    machine = await site.machine("worker-0")
    await machine.start("stranger")
    text = (
        r"worker-0 \(worker-0/uuid, BMC https://10\.0\.0\.1\) is left as it is: at 127\.0\.0\.1 SSH answers with"
        rf" host key {re.escape(STRANGER.get_fingerprint())}, .*set `consent: wipe` for this server"
    )
    with pytest.raises(InitFailed, match=text):
        await site.up(machine)
    site.states["worker-0"] = {**UNFINISHED, "generation": OLD}
    site.nodes.add(node_of("worker-0"))
    with pytest.raises(ProviderError, match=text):
        await site.up(machine)
    assert site.log == [] and machine.running == "stranger"
    del site.states["worker-0"], site.nodes.nodes[node_of("worker-0")]
    assert (await site.up(machine, accept="wipe"))["via"] == "network boot"


async def test_a_machine_that_goes_from_disk_into_the_live_system_between_two_questions_is_no_stranger(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = await site.machine("worker-0", installed=OLD)

    async def goes_over(*question: Any, **options: Any) -> str:
        try:
            return await run(*question, **options)
        except WrongHostKey:
            if machine.running == "disk":
                await machine.start("live")
            raise

    monkeypatch.setattr("metal_ipi.provider.installation.machine.run", goes_over)
    assert isinstance(await look(Job.read(site.inputs(machine))), Installing)


async def test_files_that_are_uploaded_once_more_are_withdrawn_once_more(site: Site) -> None:
    machine = await site.machine("worker-0", installed=NEW)
    inputs = site.inputs(machine)
    (place,) = inputs["artifacts"]
    again = {**inputs, "artifacts": [{**place, "hashes": {"worker-0.ign": "sha512-2"}}]}
    state, context = {**inputs, **site.states["worker-0"]}, site.context("worker-0")
    assert site.item.check(again) == []
    assert site.item.diff(context, state, again).changes == {"artifacts": "update"}
    assert site.item.preview(context, state, again) == site.states["worker-0"]
    assert site.uploaded() != []
    assert await site.item.update(context, "id", state, again) == site.states["worker-0"]
    assert site.uploaded() == [] and site.log == [] and machine.installs == 0


async def test_a_node_of_the_cluster_that_no_state_knows_is_drained_as_any_other(site: Site) -> None:
    """Of a machine that was ordered and installed long ago: `boot.install` was set later, or its Installation taken
    from the state. That its order sent it into an installer is not so any more."""
    worker = await site.machine("worker-0", installed=OLD)
    master, *_ = await site.control_plane()
    site.states.clear()
    site.nodes.pod("web", node_of("worker-0"))
    members = [node_of(f"control-plane-{number}") for number in range(3)]
    with pytest.raises(InitFailed, match="control plane machine control-plane-0 would be installed again"):
        await site.up(master, **{**CONSENTED, "ordered": True, "consent": False, "members": members})
    assert master.disk == OLD
    await site.up(worker, ordered=True)
    assert worker.disk == NEW and site.log[:2] == [f"cordon {node_of('worker-0')}", "evict web"]


async def test_a_journal_that_is_kept_does_not_name_the_secret_place(site: Site, tmp_path: Path) -> None:
    machine = await site.machine("worker-0")
    machine.statuses = [{"state": "failed", "reason": "no disk"}]
    machine.journals = [f"Command line: ignition.config.url=http://boot.test/{DIRECTORY}/worker-0.ign"]
    with pytest.raises(InitFailed, match=r"no disk.*\n  logs: "):
        await site.up(machine, logDirectory=str(tmp_path / "logs"))
    kept = (tmp_path / "logs/installation-worker-0/worker-0.journal.log").read_text()
    assert kept == "Command line: ignition.config.url=http://boot.test/[secret]/worker-0.ign"


async def test_a_machine_in_its_first_boot_is_given_time(site: Site) -> None:
    machine = await site.machine("worker-0")
    there: list[list[str]] = []
    machine.changed = lambda it_: there.append(site.uploaded()) if it_.running == "disk" else None
    await site.up(machine)
    await until(lambda: machine.running == "disk")
    # Before it was restarted, what installs it was withdrawn: so a run that follows a killed one knows.
    assert there == [[]]
    del site.states["worker-0"], site.log[:]
    await machine.start("firmware")
    waiting = asyncio.ensure_future(site.up(machine))
    await backoff.clock.sleep(1.5 * PACE.patience)
    await machine.start("disk")
    assert (await waiting)["via"] == "found" and site.log == ["boot disk worker-0"]
