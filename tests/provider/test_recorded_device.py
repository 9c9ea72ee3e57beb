"""The disk that a machine is installed on: its resource hands it over to every later installer."""

from __future__ import annotations

from typing import Any

import pytest

from metal_ipi.provider.errors import InitFailed, ProviderError
from metal_ipi.provider.resource import Values
from tests.provider.fake_machine import FakeMachine
from tests.provider.installation_site import NEW, OLD, RECORDED, Site

_MOVED: dict[str, Any] = {"byId": "nvme-eui.0025"}


async def _moved(site: Site, machine: FakeMachine, **state: Any) -> Values:
    """Update it with another install device than the state has."""
    old = {**site.inputs(machine), **site.states[machine.name], **state}
    new = site.inputs(machine, runs={**site.inputs(machine)["runs"], "installDevice": _MOVED})
    return await site.item.update(site.context(machine.name), "id", old, new)


@pytest.mark.parametrize("answers", [True, False], ids=["kexec", "network boot"])
async def test_whatever_way_it_goes_to_its_installer(site: Site, answers: bool) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    if not answers:
        await machine.start("off")
    state = await site.up(machine)
    assert state["via"] == ("kexec" if answers else "network boot")
    assert machine.recorded == state["device"] == RECORDED


@pytest.mark.parametrize("device", [None, "/dev/vda", "/dev/disk/by-id/a b", "/dev/disk/by-id/x;y"])
async def test_one_that_is_not_known_by_a_name_that_stays(site: Site, device: str | None) -> None:
    """The machine still learns that it was installed before."""
    machine = await site.machine("worker-0", installed=OLD)
    site.states["worker-0"]["device"] = device
    assert (await site.up(machine))["device"] == RECORDED and machine.recorded == ""


async def test_another_install_device_lets_the_rule_choose(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    await _moved(site, machine)
    assert machine.recorded == ""


async def test_what_is_found_done_stays_recorded(site: Site) -> None:
    """Killed after its disk was booted: nobody says any more which one that is."""
    machine = await site.machine("worker-0", installed=OLD)
    machine.disk = NEW
    assert (await site.up(machine))["device"] == RECORDED
    assert machine.installs == 0


async def test_an_unfinished_first_installation_remembers_where_it_went(site: Site) -> None:
    async def _refuse() -> None:
        raise ProviderError("no restart")

    machine = await site.machine("worker-0")
    machine.fails["systemctl reboot"] = "no"
    site.driver.restart = lambda machine_id: _refuse()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(InitFailed):
        await site.up(machine)
    assert (site.states["worker-0"]["generation"], site.states["worker-0"]["device"]) == ("", RECORDED)
