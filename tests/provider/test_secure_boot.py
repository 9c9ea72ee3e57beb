"""Secure Boot: read off BMCs of all kinds, and an iPXE that firmware would refuse is refused before power is on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provider.errors import RemoteError
from provider.platforms.redfish import Redfish
from tests.provider import fake_bmc
from tests.provider import ssh_servers as ssh
from tests.provider.fake_bmc import MAC, UUID, FakeBmc
from tests.provider.harness import Resource
from tests.provider.preflight.asking import of, the
from tests.provider.preflight.test_hardware import rack, server, tells
from tests.provider.test_redfish import ID, drive
from tests.provider.test_redfish_machine import CLAIM, CLIENT, HOST, LOAN, harness

PATH = f"/redfish/v1/Systems/{UUID}/SecureBoot"
ON = {"SecureBootEnable": True, "SecureBootCurrentBoot": "Enabled", "SecureBootMode": "DeployedMode"}
TOLD = "has Secure Boot on, and `bootMethod: pxe` leads to iPXE"
LIVE_ISO = {"bootMethod": "live-iso", "liveIso": {"url": "https://x.test/live.iso", "sha256": "0" * 64}}


@pytest.fixture
def bmc() -> Iterator[FakeBmc]:
    with fake_bmc.running() as found:
        tells(found, 64)
        yield found


def secure(bmc: FakeBmc, **members: Any) -> None:
    """Its SecureBoot resource."""
    bmc.documents[PATH] = {"Id": "SecureBoot", "Name": "UEFI Secure Boot", **members}


async def _enforced(driver: Redfish) -> bool | None:
    return (await driver.inventory("server-0")).secure_boot


@pytest.mark.parametrize(
    ("members", "enforced"),
    [
        (ON, True),
        ({**ON, "SecureBootEnable": False}, False),  # from the next boot on
        ({**ON, "SecureBootCurrentBoot": "Disabled"}, True),  # likewise
        ({"SecureBootCurrentBoot": "Enabled"}, True),  # Supermicro GB300
        ({"SecureBootCurrentBoot": "Disabled", "SecureBootEnable": None}, False),
        ({"SecureBootMode": "UserMode"}, None),
        ({}, None),
        ({**ON, "SecureBootMode": "SetupMode"}, False),
        ({**ON, "SecureBootMode": "AuditMode"}, False),
        ({**ON, "SecureBootMode": "SomethingNew"}, True),
    ],
)
def test_what_bmcs_tell(bmc: FakeBmc, members: dict[str, Any], enforced: bool | None) -> None:
    secure(bmc, **members)
    found: list[bool | None] = []

    async def work(driver: Redfish) -> None:
        found.append(await _enforced(driver))

    drive(bmc, work)
    assert found == [enforced]


@pytest.mark.parametrize("without", ["link", "resource"])
def test_a_server_without_it(bmc: FakeBmc, without: str) -> None:
    if without == "link":
        bmc.machine.extra = {**bmc.machine.extra, "SecureBoot": None}

    async def work(driver: Redfish) -> None:
        assert await _enforced(driver) is None
        await driver.boot_installer(ID, MAC)

    drive(bmc, work)
    assert bmc.machine.boots == ["Pxe"]


# --- preflight


def test_preflight_refuses_before_anything_is_powered_on(bmc: FakeBmc) -> None:
    secure(bmc, **ON)
    text = the(rack(bmc, server()), "secure-boot", "error")
    assert text.startswith(f"server worker-0 (BMC {bmc.address}) {TOLD}")
    assert "set `bootMethod: live-iso`" in text and "secure-boot in preflight.excused" in text
    assert bmc.machine.resets == [] and bmc.bodies == []


def test_preflight_lets_signed_pieces_pass(bmc: FakeBmc) -> None:
    secure(bmc, **ON)
    found = rack(bmc, server(settings=LIVE_ISO))
    assert "worker-0 (Secure Boot on, live-iso)" in the(found, "secure-boot", "ok")


def test_preflight_tells_what_it_saw(bmc: FakeBmc) -> None:
    secure(bmc, **{**ON, "SecureBootEnable": False})
    assert "worker-0 (Secure Boot off, pxe)" in the(rack(bmc, server()), "secure-boot", "ok")
    secure(bmc)
    assert "worker-0 (Secure Boot not told, pxe)" in the(rack(bmc, server()), "secure-boot", "ok")


def test_it_can_be_excused_and_a_server_that_runs_is_left_alone(bmc: FakeBmc) -> None:
    secure(bmc, **ON)
    assert rack(bmc, server(), excused=["secure-boot"]).errors == []
    bmc.machine.power = "On"
    (finding,) = of(rack(bmc, server(), again=True), "secure-boot")
    assert finding.level == "warning"


# --- the driver


def test_a_claim_is_refused_and_not_once_it_is_excused(bmc: FakeBmc) -> None:
    secure(bmc, **ON)

    async def run() -> None:
        with pytest.raises(RemoteError, match=rf"server worker-0 .*{TOLD}"):
            await Resource(await harness(bmc), "RedfishMachine").up(CLAIM)
        assert bmc.machine.resets == [] and bmc.bodies == []
        await Resource(await harness(bmc, secureBoot="ignore"), "RedfishMachine").up(CLAIM)

    asyncio.run(run())


def test_a_server_is_not_lent_that_would_not_boot(bmc: FakeBmc, tmp_path: Path) -> None:
    secure(bmc, **ON)

    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            with pytest.raises(RemoteError, match=TOLD):
                await Resource(await harness(bmc, artifacts), "EphemeralMachine").up(LOAN)
        assert bmc.machine.resets == [] and bmc.bodies == []

    asyncio.run(run())


def test_secure_boot_that_was_switched_on_since_is_seen(bmc: FakeBmc) -> None:
    secure(bmc, **ON)

    async def work(driver: Redfish) -> None:
        with pytest.raises(RemoteError, match=TOLD):
            await driver.boot_installer(ID, MAC)

    drive(bmc, work)
    assert bmc.machine.resets == [] and bmc.bodies == []
