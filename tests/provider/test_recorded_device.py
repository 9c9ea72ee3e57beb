"""The disk that a machine is installed on: its resource hands it over to every later installer."""

from __future__ import annotations

from typing import Any

import pytest

from provider.errors import InitFailed, ProviderError
from provider.resource import Values
from tests.provider.fake_machine import FakeMachine
from tests.provider.installation_world import NEW, OLD, RECORDED, Run, World

_MOVED: dict[str, Any] = {"byId": "nvme-eui.0025"}


async def _moved(it: World, machine: FakeMachine, **state: Any) -> Values:
    """Update it with another install device than the state has."""
    old = {**it.inputs(machine), **it.states[machine.name], **state}
    new = it.inputs(machine, runs={**it.inputs(machine)["runs"], "installDevice": _MOVED})
    return await it.item.update(it.context(machine.name), "id", old, new)


def test_a_machine_that_was_never_installed_has_none(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        state = await it.up(machine)
        assert machine.recorded is None and state["device"] == RECORDED

    run(test)


@pytest.mark.parametrize("answers", [True, False], ids=["kexec", "network boot"])
def test_whatever_way_it_goes_to_its_installer(run: Run, answers: bool) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        if not answers:
            await machine.start("off")
        state = await it.up(machine)
        assert state["via"] == ("kexec" if answers else "network boot")
        assert machine.recorded == state["device"] == RECORDED

    run(test)


@pytest.mark.parametrize("device", [None, "/dev/vda", "/dev/disk/by-id/a b", "/dev/disk/by-id/x;y"])
def test_one_that_is_not_known_by_a_name_that_stays(run: Run, device: str | None) -> None:
    """The machine still learns that it was installed before."""

    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        it.states["worker-0"]["device"] = device
        assert (await it.up(machine))["device"] == RECORDED and machine.recorded == ""

    run(test)


def test_another_install_device_lets_the_rule_choose(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        await _moved(it, machine)
        assert machine.recorded == ""

    run(test)


def test_what_is_found_done_stays_recorded(run: Run) -> None:
    """Killed after its disk was booted: nobody says any more which one that is."""

    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        machine.disk = NEW
        assert (await it.up(machine))["device"] == RECORDED
        assert machine.installs == 0

    run(test)


def test_an_unfinished_first_installation_remembers_where_it_went(run: Run) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        machine.fails["systemctl reboot"] = "no"
        it.driver.restart = lambda machine_id: _refuse()  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(InitFailed):
            await it.up(machine)
        assert (it.states["worker-0"]["generation"], it.states["worker-0"]["device"]) == ("", RECORDED)

    async def _refuse() -> None:
        raise ProviderError("no restart")

    run(test)
