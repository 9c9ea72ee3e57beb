"""First installations: machines are SSH servers on loopback, their BMC a driver that does as it is told, or not."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import pytest

from metal_ipi.provider.errors import InitFailed, ProviderError
from metal_ipi.provider.values import UNKNOWN, has_unknown
from tests.provider.harness import kills
from tests.provider.installation_site import NEW, OLD, RECORDED, Site


async def test_a_new_machine_is_booted_from_the_network_and_restarted_from_its_disk(site: Site) -> None:
    machine = await site.machine("worker-0")
    state = await site.up(machine)
    assert site.log == [
        "network boot worker-0",
        "install worker-0",
        "boot disk worker-0",
        "reboot worker-0",
    ]
    assert state["generation"] == NEW and state["via"] == "network boot"
    assert state["device"] == RECORDED and machine.recorded is None
    # Nothing that sends it into its installer, and nothing secret, is left.
    assert site.uploaded() == []
    assert site.told.messages[0] == "booting worker-0 into its installer by network boot"


async def test_a_machine_that_was_ordered_is_waited_for(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.later("live")
    assert (await site.up(machine, ordered=True))["via"] == "order"
    assert site.log == ["install worker-0", "boot disk worker-0", "reboot worker-0"]


async def test_an_installer_that_failed_is_told_at_once_and_tried_again_by_the_next_up(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.statuses = [{"state": "failed", "reason": "/dev/vda holds an ext4", "remedy": "Set `consent: wipe`."}]
    told = r"machine worker-0 \(worker-0/uuid, BMC https://10\.0\.0\.1\) was not installed: /dev/vda holds an ext4\. S"
    with pytest.raises(InitFailed, match=told):
        await site.up(machine)
    assert site.states["worker-0"]["generation"] == "" and machine.installs == 0
    assert site.uploaded() == [
        "an-unguessable-directory/worker-0.ign",
        "boot/boot.ipxe",
        f"boot/{machine.script.name}",
    ]
    site.another_run()
    machine.statuses = [{"state": "installing"}]
    assert (await site.up(machine))["via"] == "kexec"
    assert site.log[1:] == ["kexec worker-0", "install worker-0", "boot disk worker-0", "reboot worker-0"]


@pytest.mark.parametrize(
    ("statuses", "state"), [([], "waiting"), ([{"state": "installing", "step": "coreos-installer"}], "installing")]
)
async def test_an_installer_that_failed_without_a_word(site: Site, statuses: list[dict[str, Any]], state: str) -> None:
    machine = await site.machine("worker-0")
    machine.statuses, machine.journals = statuses, ["install.env: No such file\nFailed with result 'exit-code'.\n"]
    said = rf"worker-0 .* metal-ipi-install\.service failed in state `{state}` .*: install\.env: No such file \| Fail"
    with pytest.raises(InitFailed, match=said):
        await site.up(machine)
    # The next run sends it into its installer once more.
    site.another_run()
    assert (await site.up(machine))["via"] == "kexec"


async def test_a_journal_that_cannot_be_read(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.statuses, machine.journals, machine.fails = [], [""], {"journalctl": "no sudo"}
    with pytest.raises(InitFailed, match=r"reported no reason; its journal cannot be read \(.*no sudo\)"):
        await site.up(machine)


async def test_what_is_published_says_until_when(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.statuses = [{"state": "failed", "reason": "no disk"}]
    with pytest.raises(InitFailed, match="no disk"):
        await site.up(machine, validHours=2)
    line = machine.script.read_text().splitlines()[1]
    said = re.fullmatch(r"kernel https://mirror\.test/live initrd=main metal-ipi\.not-after=(\d+)", line)
    assert said and 7190 < int(said[1]) - time.time() <= 7200


@pytest.mark.parametrize("ordered", [False, True])
async def test_an_installer_that_has_expired_is_published_anew(site: Site, ordered: bool) -> None:
    """It was left behind, or its machine was ordered long ago."""
    machine = await site.machine("worker-0")
    machine.boot_tree.mkdir()
    machine.script.write_text("#!ipxe\nkernel x metal-ipi.not-after=1700000000\n")
    if ordered:
        machine.later("live")
    else:
        await machine.start("live")
        machine.fails["kexec"] = "no kexec"
    assert (await site.up(machine, ordered=ordered))["via"] == ("kexec" if ordered else "network boot")
    assert site.log[1:] == ["install worker-0", "boot disk worker-0", "reboot worker-0"] and site.uploaded() == []
    again = "worker-0: order: its installer has expired; it is booted into its installer again"
    assert (again in site.told.messages) is ordered


async def test_a_machine_whose_clock_is_ahead(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.clock = 25 * 3600
    with pytest.raises(InitFailed, match=r"worker-0 .* was not installed: it was valid until then\. Up\."):
        await site.up(machine)
    assert machine.installs == 0


async def test_power_lost_in_the_middle_is_caught(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.power_losses = 2
    await site.up(machine)
    assert site.log.count("power loss worker-0") == 2 and site.log.count("network boot worker-0") == 3
    assert site.log[-3:] == ["install worker-0", "boot disk worker-0", "reboot worker-0"]
    assert "worker-0: network boot: it lost its power; it is booted into its installer again" in site.told.messages


async def test_power_lost_again_and_again_is_an_error(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.power_losses = 99
    with pytest.raises(InitFailed, match=r"worker-0/uuid, .*left its installer 4 times.*`bootMethod`"):
        await site.up(machine)
    assert site.log.count("network boot worker-0") == 4


async def test_a_live_system_that_does_not_end_is_told_with_what_helps_then(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.fails["systemctl reboot"] = "no"
    machine.later("live")

    async def nothing(machine_id: str) -> None:
        site.log.append("restart in vain")

    site.driver.restart = nothing
    with pytest.raises(InitFailed, match=r"is installed, but its live system does not end\. Reset it") as caught:
        await site.up(machine, ordered=True)
    assert site.log[-2:] == ["restart in vain"] * 2 and "bootMethod" not in str(caught.value)


async def test_a_bmc_that_ignores_the_one_time_boot(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.disk = OLD
    site.driver.ignores = 2
    machine.fails["kexec"] = "no kexec"
    with pytest.raises(InitFailed, match=r"network boot: it booted from its disk instead.*try another `bootMe"):
        await site.up(machine)
    # What the user has at hand comes last.
    site.another_run()
    site.driver.ignores = 2
    with pytest.raises(ProviderError, match=r"kexec: .*no kexec.*pxe-commands: command 1 of .* ended with 3"):
        await site.up(machine, pxeCommands=["exit 3"])
    # What came up from the disk can send itself.
    site.another_run()
    machine.fails.clear()
    assert (await site.up(machine))["via"] == "kexec"


async def test_a_bmc_is_asked_twice(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.disk = OLD
    machine.fails["kexec"] = "no kexec"
    site.driver.ignores = 1
    assert (await site.up(machine))["via"] == "network boot"


async def test_a_bmc_that_does_not_answer(site: Site) -> None:
    machine = await site.machine("worker-0")
    site.driver.silent = True
    with pytest.raises(InitFailed, match=r"network boot: server worker-0/uuid \(BMC https://10\.0\.0\.1\) does no"):
        await site.up(machine)


async def test_a_bmc_that_is_slow_to_tell_of_the_power(site: Site) -> None:
    machine = await site.machine("worker-0")
    site.driver.slow = True
    assert (await site.up(machine))["via"] == "network boot"


async def test_a_live_system_that_never_comes(site: Site) -> None:
    machine = await site.machine("worker-0")
    await machine.start("stranger")
    machine.later = lambda what: None  # type: ignore[method-assign]
    with pytest.raises(InitFailed, match=r"its installer did not answer for 4. s"):
        await site.up(machine, accept="wipe")


async def test_what_is_installed_already_is_found(site: Site) -> None:
    machine = await site.machine("worker-0")
    machine.disk = NEW
    await machine.start("disk")
    assert (await site.up(machine))["via"] == "found"
    assert site.log == ["boot disk worker-0"] and site.uploaded() == []


async def test_files_that_are_gone_are_named(site: Site) -> None:
    machine = await site.machine("worker-0")
    (site.artifacts / "an-unguessable-directory/worker-0.ign").unlink()
    with pytest.raises(InitFailed, match=r"worker-0\.ign of its installer is no longer on the artifact host"):
        await site.up(machine)
    assert site.log == []


@kills
@pytest.mark.parametrize("later", [0.0, 0.01, 0.025])
@pytest.mark.parametrize("events", range(5))
async def test_killed_anywhere_it_is_finished_by_the_next_run(site: Site, events: int, later: float) -> None:
    machine = await site.machine("worker-0")
    await site.killed(machine, lambda: len(site.log) >= events, later)
    await site.up(machine)
    assert machine.installs == 1 and site.uploaded() == []
    await asyncio.gather(*machine._tasks)  # type: ignore[attr-defined]
    assert machine.running == "disk" and machine.disk == NEW


async def test_read_tells_what_the_machine_runs(site: Site) -> None:
    machine = await site.machine("worker-0", installed=NEW)
    state = {**site.inputs(machine), **site.states["worker-0"]}
    context = site.context("worker-0")
    assert await site.item.read(context, "id", state) == {}
    assert site.item.diff(context, state, site.inputs(machine)).changes == {}
    machine.disk = OLD
    assert await site.item.read(context, "id", state) == {"generation": OLD}
    assert site.item.diff(context, {**state, "generation": OLD}, site.inputs(machine)).changes == {
        "generation": "update"
    }
    machine.disk = None
    drifted = {**state, **(await site.item.read(context, "id", state) or {})}
    assert drifted["generation"] == "none"
    await machine.start("off")
    assert await site.item.read(context, "id", drifted) == {}
    await site.item.delete(context, "id", drifted)
    assert site.uploaded() == ["an-unguessable-directory/worker-0.ign"], "its `Artifacts` deletes it"
    assert site.log == []


async def test_previews(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    inputs, context = site.inputs(machine), site.context("worker-0")
    previewed = site.item.preview(context, None, inputs)
    assert previewed["generation"] == NEW and has_unknown(previewed["device"])
    state = {**inputs, **site.states["worker-0"], "runs": {**inputs["runs"], "kernelArguments": []}}
    assert has_unknown(site.item.preview(context, state, inputs)["installedAt"])
    assert site.item.diff(context, state, inputs).changes == {
        "generation": "update",
        "runs.kernelArguments": "update",
    }
    same = {
        **inputs,
        "generation": OLD,
        "validHours": 2,
        "expected": {"EXPECTED_HOSTNAME": "other"},
        "script": "#!ipxe\nkernel other",
        "timeoutSeconds": 9,
    }
    assert site.item.diff(context, {**state, "runs": inputs["runs"]}, same).changes == {}
    assert site.item.preview(context, state, same) == site.states["worker-0"]
    assert site.item.diff(context, state, {**same, "machineId": "another"}).replaces == {"machineId"}
    unknown = dict.fromkeys(inputs, UNKNOWN)
    assert site.item.check({**unknown, "live": {**inputs["live"], "kernel": UNKNOWN}, "members": [UNKNOWN]}) == []
    assert site.item.check(unknown) == []
    assert site.log == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"mac": None}, "mac is required on redfish"),
        ({"platform": "equinix-metal"}, "userData is required on equinix-metal"),
        ({"generation": "one"}, "generation must be 16 hex digits"),
        ({"members": ["other"]}, r"members must hold worker-0\.lab"),
        ({"maxUnavailable": 0}, "maxUnavailable must be"),
        ({"script": "#!ipxe\nboot\n"}, "script must be an iPXE script with a kernel"),
        ({"role": "master"}, "role must be one of control-plane, arbiter, worker"),
        ({"live": {"kernel": {"url": "x", "sha256": "y"}}}, "live.kernel.url must be a URL"),
        ({"credentials": {"url": "http://x"}}, "credentials.url must be an https URL"),
        ({"scripts": "x"}, "scripts is not known; did you mean `script`"),
    ],
)
async def test_problems_of_inputs(site: Site, wrong: dict[str, Any], problem: str) -> None:
    machine = await site.machine("worker-0")
    found = [f"{each.path} {each.reason}" for each in site.item.check({**site.inputs(machine), **wrong})]
    assert [text for text in found if re.search(problem, text)], found
