"""A server is installed from a disc of its own, which is there only as long as its BMC is to boot it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from provider.errors import InitFailed
from provider.live_iso.iso9660 import Disc
from tests.provider.fake_machine import FakeMachine
from tests.provider.installation_world import NEW, OLD, Run, World
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


@pytest.fixture
def install(run: Run, web: Web, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a test in a world whose servers boot discs."""
    monkeypatch.setattr(FakeMachine, "told", property(_told))

    def runner(test: Callable[[World], Awaitable[None]]) -> None:
        async def inside(it: World) -> None:
            bmcs = it.settings.bmcs or {}
            changed = {
                name: bmc.model_copy(update={"boot_method": "live-iso", "live_iso": web.iso})
                for name, bmc in bmcs.items()
            }
            it.settings = replace(it.settings, bmcs=changed)
            await test(it)

        run(inside)

    return runner


def test_a_new_server_boots_its_disc_once(install: Callable[..., None], web: Web) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        state = await it.up(machine, script=SCRIPT)
        assert it.log == ["network boot worker-0", "install worker-0", "boot disk worker-0", "reboot worker-0"]
        assert (state["generation"], state["via"]) == (NEW, "live ISO")
        assert machine.not_after is not None, "the disc says until when its installer works"
        assert it.uploaded() == [] and web.asked == ["/live.iso"]
        assert it.told.messages[0] == "sending worker-0 into its installer by live ISO"

    install(test)


def test_a_node_that_goes_by_kexec_needs_no_disc(install: Callable[..., None], web: Web) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        assert (await it.up(machine, script=SCRIPT))["via"] == "kexec"
        assert web.asked == [], "nothing was fetched, made or uploaded"

    install(test)


def test_a_node_that_refuses_kexec_gets_its_disc(install: Callable[..., None], web: Web) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0", installed=OLD)
        machine.fails["kexec -l"] = "Operation not permitted"
        assert (await it.up(machine, script=SCRIPT))["via"] == "live ISO"
        assert it.uploaded() == [] and web.asked == ["/live.iso"]

    install(test)


def test_a_server_that_does_not_boot_its_disc_is_told_what_to_look_at(install: Callable[..., None]) -> None:
    async def test(it: World) -> None:
        machine = await it.machine("worker-0")
        it.driver.ignores = 9
        machine.fails["kexec -l"] = "Operation not permitted"
        with pytest.raises(InitFailed, match=r"Does its BMC reach artifacts\.bootBaseUrl"):
            await it.up(machine, script=SCRIPT)
        (left,) = [path for path in it.uploaded() if path.endswith(".iso")]
        assert len(left.split("/")[0]) == 43

    install(test)
