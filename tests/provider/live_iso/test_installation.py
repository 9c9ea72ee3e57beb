"""A server is installed from a disc of its own, which is there only as long as its BMC is to boot it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from metal_ipi.provider.errors import InitFailed
from metal_ipi.provider.live_iso.iso9660 import Disc
from tests.provider.fake_machine import FakeMachine
from tests.provider.harness import settings_of
from tests.provider.installation_site import NEW, OLD, Site
from tests.provider.live_iso.discs import line
from tests.provider.live_iso.test_lending import Web, cache, web

__all__ = ["cache", "web"]  # fixtures
SCRIPT = "#!ipxe\nkernel https://mirror.test/live initrd=main\ninitrd --name main https://mirror.test/initramfs\nboot\n"


def _told(machine: FakeMachine) -> str:
    """The kernel arguments of the disc that the artifact host has; there is one machine."""
    found = list(machine.boot_tree.parent.rglob("*.iso"))
    if not found:
        return ""
    with found[0].open("rb") as file:
        return line(Disc(file))


IRONIC = {
    "endpoint": "https://ironic.test",
    "username": "ipi",
    "password": "a-password-of-nobody",
    "claimant": "stack-a",
    "servers": {"worker-0": {"node": "u7"}},
}


@pytest.fixture(params=["redfish", "ironic"])
def site(site: Site, web: Web, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Site:
    """The site, where all servers boot discs: attached by their BMCs, or by Ironic."""
    monkeypatch.setattr(FakeMachine, "told", property(_told))
    site.platform = request.param
    if site.platform == "ironic":
        iso = {"url": web.iso.url, "sha256": web.iso.sha256}
        added = settings_of(ironic={**IRONIC, "liveIso": iso})
        site.settings = replace(site.settings, bmcs=None, ironic=added.ironic, ironic_servers=added.ironic_servers)
        return site
    bmcs = {
        name: bmc.model_copy(update={"boot_method": "live-iso", "live_iso": web.iso})
        for name, bmc in (site.settings.bmcs or {}).items()
    }
    site.settings = replace(site.settings, bmcs=bmcs)
    return site


async def test_a_new_server_boots_its_disc_once(site: Site, web: Web) -> None:
    machine = await site.machine("worker-0")
    state = await site.up(machine, script=SCRIPT)
    assert site.log == ["network boot worker-0", "install worker-0", "boot disk worker-0", "reboot worker-0"]
    assert (state["generation"], state["via"]) == (NEW, "live ISO")
    assert machine.not_after is not None, "the disc says until when its installer works"
    assert site.uploaded() == [] and web.asked == ["/live.iso"]
    assert site.told.messages[0] == "booting worker-0 into its installer by live ISO"


async def test_a_node_that_goes_by_kexec_needs_no_disc(site: Site, web: Web) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    assert (await site.up(machine, script=SCRIPT))["via"] == "kexec"
    assert web.asked == [], "nothing was fetched, made or uploaded"


async def test_a_node_that_refuses_kexec_gets_its_disc(site: Site, web: Web) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    machine.fails["kexec -l"] = "Operation not permitted"
    assert (await site.up(machine, script=SCRIPT))["via"] == "live ISO"
    assert site.uploaded() == [] and web.asked == ["/live.iso"]


async def test_a_server_that_does_not_boot_its_disc_is_told_what_to_look_at(site: Site) -> None:
    machine = await site.machine("worker-0")
    site.driver.ignores = 9
    machine.fails["kexec -l"] = "Operation not permitted"
    with pytest.raises(
        InitFailed, match=r"Check that its BMC(, or Ironic's conductor,)? reaches artifacts\.bootBaseUrl"
    ):
        await site.up(machine, script=SCRIPT)
    (left,) = [path for path in site.uploaded() if path.endswith(".iso")]
    assert len(left.split("/")[0]) == 43


@pytest.mark.parametrize("still_there", [True, False])
async def test_the_script_goes_that_it_booted_before_it_booted_discs(site: Site, still_there: bool) -> None:
    """The settings tell how it boots now; a server that is taken out of them leaves nothing either."""
    machine = await site.machine("worker-0")
    machine.script.parent.mkdir()
    machine.script.write_text(SCRIPT)
    if not still_there:
        site.settings = replace(site.settings, bmcs=site.settings.bmcs and {}, ironic_servers={})
    await site.item.delete(site.context("worker-0"), "id", {**site.inputs(machine), "generation": NEW})
    assert not machine.script.exists()
