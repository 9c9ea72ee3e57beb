"""Servers' inventories in the report: what is asked, what is told, and what a stack may override."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from metal_ipi.provider.bmc_settings import BmcSettings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.inventory.facts import Card, Disk, Hardware
from metal_ipi.provider.platforms.ironic import inspected
from metal_ipi.provider.platforms.redfish import Redfish
from metal_ipi.provider.platforms.redfish.connection import Connection
from tests.provider.fake_bmc import MAC, UUID, FakeBmc
from tests.provider.harness import settings_of
from tests.provider.preflight.asking import of, rack, server, tells, the

T = TypeVar("T")
pytestmark = pytest.mark.usefixtures("no_waiting")
OTHER = "52:54:00:00:00:99"
WHY = "the card is behind a riser that the BMC does not see"


def test_what_is_told_and_what_is_wrong_stand_together(bmc: FakeBmc) -> None:
    tells(bmc, 64, LogicalProcessorCount=16)
    bmc.machine.extra |= {"TrustedModules": [], "Manufacturer": "ACME", "Status": {"Health": "Critical"}}
    found = rack(bmc, server(macs=[OTHER], device={"minSize": 60}, tpm2=True))
    text = str(found)
    table = text[: text.index("\nok ")].splitlines()
    assert table[0] == f"worker-0: ACME, power Off, BMC {bmc.address}"
    assert "  memory         64 GiB" in table and f"  network cards  {MAC}, link not told" in table
    wrong = [line.split(":")[0].split() for line in table if line.startswith(("  error", "  warning"))]
    assert wrong == [["error", each] for each in ("disks", "cards", "tpm", "health")]
    assert "\nworker-0:\n  error    disks: the disk to install to has less" in found.problems()
    assert bmc.machine.resets == [] and bmc.bodies == [], "nothing was changed"


def test_a_bmc_that_is_entered_twice(bmc: FakeBmc) -> None:
    tells(bmc, 64)
    found = rack(bmc, server("worker-0", macs=[MAC]), server("worker-1", macs=[OTHER]), architecture="aarch64")
    assert [each.host for each in of(found, "twins")] == ["worker-0", "worker-1"]
    assert f"both BMCs report the UUID {UUID}" in of(found, "twins")[0].what
    assert [each.host for each in of(found, "cards")] == ["worker-1"]
    assert of(found, "architecture") == [], "the BMC does not report"


def test_overrides_give_a_reason_and_reach_the_claim(bmc: FakeBmc) -> None:
    tells(bmc, 64)
    found = rack(bmc, server(macs=[OTHER]), overrides={"cards": WHY})
    assert found.errors == [] and f"(overridden: {WHY})" in the(found, "cards", "warning")
    told = asyncio.run(_claimed(bmc))
    with pytest.raises(InvalidInputs, match="no network interface with the MAC address"):
        told.check_mac(OTHER, BmcSettings.read(bmc.settings()))
    told.check_mac(OTHER, BmcSettings.read(bmc.settings(cards="ignore")))


async def _claimed(bmc: FakeBmc) -> Any:
    async with Redfish(settings_of(bmcs={"worker-0": bmc.settings()})) as driver:
        return await driver.inventory("worker-0", macs=[OTHER])


def test_what_runs_already_is_only_warned_of(bmc: FakeBmc) -> None:
    tells(bmc, 64)
    the(rack(bmc, server(macs=[OTHER]), again=True), "cards", "error")
    bmc.machine.power = "On"
    the(rack(bmc, server(macs=[OTHER]), again=True), "cards", "warning")


class _Blocked(Connection):
    """A BMC that answers when all others were asked, too."""

    def _do(self, operation: Callable[[Any], T]) -> T:
        return operation(None)


def test_slow_bmcs_do_not_hold_others() -> None:
    """Threads that all share are fewer: 32 at most, with any number of processors up to 28."""
    meeting = threading.Barrier(40)

    async def all_of_them() -> None:
        settings = BmcSettings.read({"address": "https://b", "username": "u", "password": "p"})
        connections = [_Blocked(f"server-{number}", settings) for number in range(40)]
        await asyncio.gather(*(each.call("to wait", lambda _: meeting.wait(30)) for each in connections))
        await asyncio.gather(*(each.close() for each in connections))

    asyncio.run(all_of_them())


def test_what_an_inspection_tells() -> None:
    found = {
        "cpu": {"count": 32, "architecture": "x86_64"},
        "memory": {"physical_mb": 65536},
        "disks": [
            {"name": "/dev/sda", "size": 480 * 10**9, "rotational": False, "serial": "S", "wwn": "0x5000c500abcdef01"}
        ],
        "interfaces": [{"name": "eno1", "mac_address": MAC.upper(), "has_carrier": True}, {"name": "usb0"}],
        "boot": {"current_boot_mode": "uefi"},
        "system_vendor": {"manufacturer": "ACME", "product_name": "R1", "serial_number": "SN"},
    }
    disk = Disk(name="/dev/sda", size_bytes=480 * 10**9, media_type="SSD", serial="S", wwns=["5000c500abcdef01"])
    assert inspected.hardware(found, {"memory_mb": 1}) == Hardware(
        manufacturer="ACME",
        model="R1",
        serial="SN",
        architecture="x86_64",
        memory_mib=65536,
        cpus=32,
        disks=[disk],
        cards=[Card(mac=MAC, link="up")],
        boot_mode="uefi",
    )
    given = {"memory_mb": "32768", "cpus": "eight", "cpu_arch": "aarch64"}
    assert inspected.hardware({}, given) == Hardware(memory_mib=32768, architecture="aarch64")
