"""RAID, firmware and its settings: a real Ironic has BMCs of the lab do it, by steps that the settings name."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.bmc.application import STORAGE
from lab.bmc.updates import firmware
from metal_ipi.provider.errors import ProviderError
from tests.lab.bmc.harness import World, world
from tests.provider import ironic_process
from tests.provider.test_ironic import Site, bios_step, refused
from tests.serving import serving

pytestmark = [pytest.mark.servers, pytest.mark.ironic]


@pytest.fixture(scope="module")
def ironic(tmp_path_factory: pytest.TempPathFactory) -> Generator[ironic_process.Ironic]:
    with ironic_process.running(tmp_path_factory.mktemp("ironic")) as it:
        yield it


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    with world(tmp_path_factory.mktemp("rack"), 1) as it:
        yield it


@pytest.fixture
def site(ironic: ironic_process.Ironic, rack: World, artifact_host: dict[str, Any], tmp_path: Path) -> Generator[Site]:
    with serving(tmp_path / "artifacts") as url:
        yield Site(ironic=ironic, rack=rack, artifacts={**artifact_host, "bootBaseUrl": url}, folder=tmp_path)


def step(interface: str, name: str, **args: Any) -> dict[str, Any]:
    """A step, as the provider's configuration has it."""
    return {"interface": interface, "step": name, "args": json.dumps(args)}


DELETE = step("raid", "delete_configuration")


def raid(level: str, *drives: str) -> dict[str, Any]:
    """The step that makes one volume of these drives."""
    disk = {"size_gb": "MAX", "raid_level": level, "is_root_volume": True, "controller": STORAGE}
    disk |= {"physical_disks": list(drives)}
    return step("raid", "apply_configuration", raid_config={"logical_disks": [disk]})


def update(component: str, url: str) -> dict[str, Any]:
    """The step that has a BMC fetch new firmware."""
    return step("firmware", "update", settings=[{"component": component, "url": url, "wait": 1}])


@contextmanager
def offered(site: Site, file: bytes) -> Generator[str]:
    """The URL of a firmware file."""
    directory = site.folder / "firmware"
    directory.mkdir()
    (directory / "firmware.bin").write_bytes(file)
    with serving(directory) as url:
        yield f"{url}/firmware.bin"


class Server:
    """The rack's server."""

    def __init__(self, site: Site) -> None:
        self._site = site
        bmc = site.rack.rack.bmcs["server-0"]
        self.drives = [disk.serial for disk in bmc.spec.disks]

    def volumes(self) -> list[tuple[str, int]]:
        """RAID level and MiB."""
        (storage,) = self._site.rack.system().storage.get_members()
        return [(each.raid_type.value, each.capacity_bytes // 32 >> 20) for each in storage.volumes.get_members()]

    def disks(self) -> list[int]:
        """What its system sees since its last start: MiB."""
        return [disk.size_mib for disk in self._site.rack.machines.specs[self._site.rack.servers[0].uuid].disks]

    async def deployed(self, *steps: dict[str, Any], clean: tuple[dict[str, Any], ...] = ()) -> str | None:
        """Claims it, boots its installer and gives it back; what went wrong with the deployment."""
        own = self._site.server(0, deploySteps=list(steps), cleanSteps=list(clean))
        settings = self._site.settings({"server-0": own}, release="remove")
        async with self._site.driver(settings) as driver:
            node = await driver.claim("server-0", accept="wipe")
            await self._site.published(settings, 0)
            failure = None
            try:
                await driver.boot_installer(f"server-0/{node.id}", self._site.mac(0))
            except ProviderError as error:
                failure = str(error)
            assert (self._site.hardware(0)[:2] == ("On", "Cd Continuous")) == (failure is None)
            await driver.give_back(f"server-0/{node.id}")
            return failure


@pytest.mark.nightly
async def test_raid_and_firmware_are_done_when_a_server_is_deployed(site: Site) -> None:
    server, rack = Server(site), site.rack
    with offered(site, firmware("BIOS", "lab-2.0")) as url:
        mirrored, newer = raid("1", *server.drives), update("bios", url)
        assert await server.deployed(mirrored, newer, clean=(bios_step(ProcVirtualization="Enabled"),)) is None
    assert (server.volumes(), server.disks()) == ([("RAID1", 4096)], [4096]), "what its installer sees"
    assert rack.system().bios_version == "lab-2.0"
    assert rack.system().bios.attributes["ProcVirtualization"] == "Enabled"
    assert "drives of" in str(await server.deployed(raid("0", *server.drives))), "which are in use"
    assert await server.deployed(DELETE, raid("0", *server.drives)) is None
    assert (server.volumes(), server.disks()) == ([("RAID0", 8192)], [8192]), "in the place of the other"
    assert await server.deployed() is None
    assert server.volumes() == [("RAID0", 8192)], "nothing is done unasked"
    assert await server.deployed(DELETE) is None
    assert (server.volumes(), server.disks()) == ([], [4096, 8192])


@pytest.mark.nightly
async def test_a_step_that_fails_is_told_once_and_does_not_boot_the_installer(site: Site) -> None:
    server, boots = Server(site), len(site.rack.machines.boots)
    site.rack.fault("raid_refused")
    found = await server.deployed(raid("1", *server.drives))
    site.rack.do(do="clear", server="server-0")
    assert found is not None and "is in the state deploy failed: " in found
    assert "raid" in found and "the controller's battery is being charged" in found
    assert "or its `deploySteps`; then run the same command again" in found
    assert not any("it is repeated" in text for text in site.said), "no firmware is written twice unasked"
    with offered(site, b"{}") as url:
        found = await server.deployed(update("bios", url))
    assert found is not None and "Firmware update failed" in found and "not firmware of this server" in found
    found = await server.deployed(raid("5", *server.drives))
    assert found is not None and "of RAID0, RAID1" in found
    assert site.hardware(0)[0] == "Off" and server.volumes() == []
    assert "cd" not in [first for first, *_ in site.rack.machines.boots[boots:]]


async def test_steps_that_take_what_is_on_the_disks_want_consent(site: Site) -> None:
    own = site.server(0, deploySteps=[DELETE])
    found = await refused(site, site.settings({"server-0": own}), "server-0")
    assert "server-0: the deploy steps raid.delete_configuration destroy the data on its disks" in found
    assert site.ironic.client.get("/v1/nodes/server-0").status_code == 404, "not even enrolled"
