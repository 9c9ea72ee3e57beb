"""First installations: machines are SSH servers on loopback, their BMC a driver that does as it is told, or not."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import pytest

from provider.errors import InitFailed, ProviderError
from provider.values import UNKNOWN, has_unknown
from tests.provider.harness import kills
from tests.provider.installation_world import NEW, OLD, Run, World


def test_a_new_machine_is_booted_from_the_network_and_restarted_from_its_disk(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        state = await it.up(machine)
        assert it.log == [
            "network boot worker-0",
            "install worker-0",
            "boot disk worker-0",
            "reboot worker-0",
        ]
        assert state["generation"] == NEW and state["via"] == "network boot"
        assert state["device"] == "/dev/disk/by-id/virtio-1"
        # Nothing that sends it into its installer, and nothing secret, is left.
        assert it.uploaded() == []
        assert it.told.messages[0] == "sending worker-0 into its installer by network boot"

    run(test)


def test_a_machine_that_was_ordered_is_waited_for(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.later("live")
        assert (await it.up(machine, ordered=True))["via"] == "order"
        assert it.log == ["install worker-0", "boot disk worker-0", "reboot worker-0"]

    run(test)


def test_an_installer_that_failed_is_told_at_once_and_tried_again_by_the_next_up(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.statuses = [{"state": "failed", "reason": "/dev/vda holds an ext4", "remedy": "Set `consent: wipe`."}]
        told = (
            r"machine worker-0 \(worker-0/uuid, BMC https://10\.0\.0\.1\) was not installed: /dev/vda holds an ext4\. S"
        )
        with pytest.raises(InitFailed, match=told):
            await it.up(machine)
        assert it.states["worker-0"]["generation"] == "" and machine.installs == 0
        assert it.uploaded() == [
            "an-unguessable-directory/worker-0.ign",
            "boot/boot.ipxe",
            f"boot/{machine.script.name}",
        ]
        it.another_run()
        machine.statuses = [{"state": "installing"}]
        assert (await it.up(machine))["via"] == "kexec"
        assert it.log[1:] == ["kexec worker-0", "install worker-0", "boot disk worker-0", "reboot worker-0"]

    run(test)


@pytest.mark.parametrize(
    ("statuses", "state"), [([], "waiting"), ([{"state": "installing", "step": "coreos-installer"}], "installing")]
)
def test_an_installer_that_failed_without_a_word(run: Run, statuses: list[dict[str, Any]], state: str) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.statuses, machine.journals = statuses, ["install.env: No such file\nFailed with result 'exit-code'.\n"]
        said = (
            rf"worker-0 .* metal-ipi-install\.service failed in state `{state}` .*: install\.env: No such file \| Fail"
        )
        with pytest.raises(InitFailed, match=said):
            await it.up(machine)
        # The next run sends it into its installer once more.
        it.another_run()
        assert (await it.up(machine))["via"] == "kexec"

    run(test)


def test_a_journal_that_cannot_be_read(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.statuses, machine.journals, machine.fails = [], [""], {"journalctl": "no sudo"}
        with pytest.raises(InitFailed, match=r"did not tell why; its journal cannot be read \(.*no sudo\)"):
            await it.up(machine)

    run(test)


def test_what_is_published_says_until_when(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.statuses = [{"state": "failed", "reason": "no disk"}]
        with pytest.raises(InitFailed, match="no disk"):
            await it.up(machine, validHours=2)
        line = machine.script.read_text().splitlines()[1]
        said = re.fullmatch(r"kernel https://mirror\.test/live initrd=main metal-ipi\.not-after=(\d+)", line)
        assert said and 7190 < int(said[1]) - time.time() <= 7200

    run(test)


def test_an_installer_that_was_left_behind_has_expired_and_the_next_up_publishes_another(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.boot_tree.mkdir()
        machine.script.write_text("#!ipxe\nkernel x metal-ipi.not-after=1700000000\n")
        await machine.start("live")
        machine.fails["kexec"] = "no kexec"
        assert (await it.up(machine))["via"] == "network boot"
        assert it.log == ["network boot worker-0", "install worker-0", "boot disk worker-0", "reboot worker-0"]
        assert it.uploaded() == []

    run(test)


def test_an_ordered_machine_whose_installer_has_expired(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.boot_tree.mkdir()
        machine.script.write_text("#!ipxe\nkernel x metal-ipi.not-after=1700000000\n")
        machine.later("live")
        assert (await it.up(machine, ordered=True))["via"] == "kexec"
        assert "worker-0: order: its installer has expired; it is sent into its installer again" in it.told.messages

    run(test)


def test_a_machine_whose_clock_is_ahead(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.clock = 25 * 3600
        with pytest.raises(InitFailed, match=r"worker-0 .* was not installed: it was valid until then\. Up\."):
            await it.up(machine)
        assert machine.installs == 0

    run(test)


def test_power_lost_in_the_middle_is_caught(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.power_losses = 2
        await it.up(machine)
        assert it.log.count("power loss worker-0") == 2 and it.log.count("network boot worker-0") == 3
        assert it.log[-3:] == ["install worker-0", "boot disk worker-0", "reboot worker-0"]
        assert "worker-0: network boot: it lost its power; it is sent into its installer again" in it.told.messages

    run(test)


def test_power_lost_again_and_again_is_an_error(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.power_losses = 99
        with pytest.raises(InitFailed, match=r"worker-0/uuid, .*fell out of its installer 4 times.*`bootMethod`"):
            await it.up(machine)
        assert it.log.count("network boot worker-0") == 4

    run(test)


def test_a_live_system_that_does_not_end_is_told_with_what_helps_then(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.fails["systemctl reboot"] = "no"
        machine.later("live")

        async def nothing(machine_id: str) -> None:
            it.log.append("restart in vain")

        it.driver.restart = nothing
        with pytest.raises(InitFailed, match=r"is installed, but its live system does not end\. Reset it") as caught:
            await it.up(machine, ordered=True)
        assert it.log[-2:] == ["restart in vain"] * 2 and "bootMethod" not in str(caught.value)

    run(test)


def test_a_bmc_that_ignores_the_one_time_boot(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.disk = OLD
        it.driver.ignores = 2
        machine.fails["kexec"] = "no kexec"
        with pytest.raises(InitFailed, match=r"network boot: it came up from its disk instead.*Try another `bootMe"):
            await it.up(machine)
        # What the user has at hand comes last.
        it.another_run()
        it.driver.ignores = 2
        with pytest.raises(ProviderError, match=r"kexec: .*no kexec.*pxe-commands: command 1 of .* ended with 3"):
            await it.up(machine, pxeCommands=["exit 3"])
        # What came up from the disk can send itself.
        it.another_run()
        machine.fails.clear()
        assert (await it.up(machine))["via"] == "kexec"

    run(test)


def test_a_bmc_is_asked_twice(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.disk = OLD
        machine.fails["kexec"] = "no kexec"
        it.driver.ignores = 1
        assert (await it.up(machine))["via"] == "network boot"

    run(test)


def test_a_bmc_that_does_not_answer(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        it.driver.silent = True
        with pytest.raises(InitFailed, match=r"network boot: server worker-0/uuid \(BMC https://10\.0\.0\.1\) does no"):
            await it.up(machine)

    run(test)


def test_a_bmc_that_is_slow_to_tell_of_the_power(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        it.driver.slow = True
        assert (await it.up(machine))["via"] == "network boot"

    run(test)


def test_a_live_system_that_never_comes(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        await machine.start("stranger")
        machine.later = lambda what: None  # type: ignore[method-assign]
        with pytest.raises(InitFailed, match=r"its installer did not answer for . s"):
            await it.up(machine, accept="wipe")

    run(test)


def test_what_is_installed_already_is_found(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.disk = NEW
        await machine.start("disk")
        assert (await it.up(machine))["via"] == "found"
        assert it.log == ["boot disk worker-0"] and it.uploaded() == []

    run(test)


def test_files_that_are_gone_are_named(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        (it.artifacts / "an-unguessable-directory/worker-0.ign").unlink()
        with pytest.raises(InitFailed, match=r"worker-0\.ign of its installer is not on the artifact host any more"):
            await it.up(machine)
        assert it.log == []

    run(test)


@kills
@pytest.mark.parametrize("step", range(12))
def test_killed_anywhere_it_is_finished_by_the_next_run(run: Run, step: int) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        await it.killed(machine, 0.005 + step * 0.025)
        await it.up(machine)
        assert machine.installs == 1 and it.uploaded() == []
        await asyncio.gather(*machine._tasks)  # type: ignore[attr-defined]
        assert machine.running == "disk" and machine.disk == NEW

    run(test)


def test_read_tells_what_the_machine_runs(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=NEW)
        state = {**it.inputs(machine), **it.states["worker-0"]}
        context = it.context("worker-0")
        assert await it.item.read(context, "id", state) == {}
        assert it.item.diff(context, state, it.inputs(machine)).changes == {}
        machine.disk = OLD
        assert await it.item.read(context, "id", state) == {"generation": OLD}
        assert it.item.diff(context, {**state, "generation": OLD}, it.inputs(machine)).changes == {
            "generation": "update"
        }
        machine.disk = None
        drifted = {**state, **(await it.item.read(context, "id", state) or {})}
        assert drifted["generation"] == "none"
        await machine.start("off")
        assert await it.item.read(context, "id", drifted) == {}
        await it.item.delete(context, "id", drifted)
        assert it.uploaded() == ["an-unguessable-directory/worker-0.ign"], "its `Artifacts` deletes it"
        assert it.log == []

    run(test)


def test_previews(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        inputs, context = it.inputs(machine), it.context("worker-0")
        previewed = it.item.preview(context, None, inputs)
        assert previewed["generation"] == NEW and has_unknown(previewed["device"])
        state = {**inputs, **it.states["worker-0"], "runs": {**inputs["runs"], "kernelArguments": []}}
        assert has_unknown(it.item.preview(context, state, inputs)["installedAt"])
        assert it.item.diff(context, state, inputs).changes == {
            "generation": "update",
            "runs.kernelArguments": "update",
        }
        same = {
            **inputs,
            "generation": OLD,
            "validHours": 2,
            "check": "other",
            "script": "#!ipxe\nkernel other",
            "timeoutSeconds": 9,
        }
        assert it.item.diff(context, {**state, "runs": inputs["runs"]}, same).changes == {}
        assert it.item.preview(context, state, same) == it.states["worker-0"]
        assert it.item.diff(context, state, {**same, "machineId": "another"}).replaces == {"machineId"}
        unknown = dict.fromkeys(inputs, UNKNOWN)
        assert it.item.check({**unknown, "live": {**inputs["live"], "kernel": UNKNOWN}, "members": [UNKNOWN]}) == []
        assert it.item.check(unknown) == []
        assert it.log == []

    run(test)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"mac": None}, "mac is required on redfish"),
        ({"platform": "equinix-metal"}, "userData is required on equinix-metal"),
        ({"generation": "one"}, "generation must be 16 hex digits"),
        ({"members": ["other"]}, r"members must hold worker-0\.lab"),
        ({"maxUnavailable": 0}, "maxUnavailable must be"),
        ({"script": "#!ipxe\nboot\n"}, "script must be an iPXE script with a kernel"),
        ({"role": "master"}, "role must be one of control-plane, worker"),
        ({"live": {"kernel": {"url": "x", "sha256": "y"}}}, "live.kernel.url must be a URL"),
        ({"credentials": {"url": "http://x"}}, "credentials.url must be an https URL"),
        ({"scripts": "x"}, "scripts is not known; did you mean `script`"),
    ],
)
def test_problems_of_inputs(run: Run, wrong: dict[str, Any], problem: str) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        found = [f"{each.path} {each.reason}" for each in it.item.check({**it.inputs(machine), **wrong})]
        assert [text for text in found if re.search(problem, text)], found

    run(test)
