"""Secure Boot: read off BMCs of all kinds, and an iPXE that firmware would refuse is refused before power is on."""

from __future__ import annotations

from typing import Any

import pytest

from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.platforms.redfish import Redfish
from tests.provider.fake_bmc import MAC, UUID, FakeBmc
from tests.provider.harness import Resource
from tests.provider.preflight.asking import of, rack, server, tells, the
from tests.provider.test_redfish import ID, drive
from tests.provider.test_redfish_machine import CLAIM, LOAN, harness

pytestmark = pytest.mark.usefixtures("no_waiting")

PATH = f"/redfish/v1/Systems/{UUID}/SecureBoot"
ON = {"SecureBootEnable": True, "SecureBootCurrentBoot": "Enabled", "SecureBootMode": "DeployedMode"}
OFF = {**ON, "SecureBootEnable": False}
TOLD = "has Secure Boot on, and `bootMethod: pxe` leads to iPXE"
LIVE_ISO = {"bootMethod": "live-iso", "liveIso": {"url": "https://x.test/live.iso", "sha256": "0" * 64}}


def secure(bmc: FakeBmc, **members: Any) -> None:
    """Its SecureBoot resource, of a server that is large enough."""
    tells(bmc, 64)
    bmc.documents[PATH] = {"Id": "SecureBoot", "Name": "UEFI Secure Boot", **members}


def untouched(bmc: FakeBmc) -> bool:
    return bmc.machine.resets == [] and bmc.bodies == []


@pytest.mark.parametrize(
    ("members", "enforced"),
    [
        (ON, True),
        (OFF, False),  # from the next boot on
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

    async def work(driver: Redfish) -> None:
        assert (await driver.inventory("server-0")).secure_boot is enforced

    drive(bmc, work)


@pytest.mark.parametrize("extra", [{"SecureBoot": None}, {}], ids=["no link", "no resource"])
def test_a_server_without_it(bmc: FakeBmc, extra: dict[str, Any]) -> None:
    bmc.machine.extra = extra

    async def work(driver: Redfish) -> None:
        assert (await driver.inventory("server-0")).secure_boot is None
        await driver.boot_installer(ID, MAC)

    drive(bmc, work)
    assert bmc.machine.boots == ["Pxe"]


# --- preflight


def test_preflight_refuses_before_anything_is_powered_on(bmc: FakeBmc) -> None:
    secure(bmc, **ON)
    text = the(rack(bmc, server()), "secure-boot", "error")
    assert text.startswith(f"server worker-0 (BMC {bmc.address}) {TOLD}")
    assert "set `bootMethod: live-iso`" in text and "secure-boot in preflight.overrides" in text
    assert rack(bmc, server(), excused=["secure-boot"]).errors == []
    bmc.machine.power = "On"
    (finding,) = of(rack(bmc, server(), again=True), "secure-boot")
    assert finding.level == "warning", "it runs already"
    assert untouched(bmc)


@pytest.mark.parametrize(
    ("members", "settings", "told"),
    [(ON, LIVE_ISO, "on, live-iso"), (OFF, {}, "off, pxe"), ({}, {}, "not told, pxe")],
)
def test_preflight_tells_what_it_saw(bmc: FakeBmc, members: Any, settings: dict[str, Any], told: str) -> None:
    secure(bmc, **members)
    assert f"worker-0 (Secure Boot {told})" in the(rack(bmc, server(settings=settings)), "secure-boot", "ok")


# --- the driver


async def test_a_claim_is_refused_and_not_once_it_is_excused(bmc: FakeBmc, artifact_host: dict[str, Any]) -> None:
    secure(bmc, **ON)
    for kind, inputs in (("RedfishMachine", CLAIM), ("EphemeralMachine", LOAN)):
        with pytest.raises(RemoteError, match=rf"server worker-0 .*{TOLD}"):
            await Resource(await harness(bmc, artifact_host), kind).up(inputs)
    await Resource(await harness(bmc, secureBoot="ignore"), "RedfishMachine").up(CLAIM)
    assert untouched(bmc)


def test_secure_boot_that_was_switched_on_since_is_seen(bmc: FakeBmc) -> None:
    secure(bmc, **ON)

    async def work(driver: Redfish) -> None:
        with pytest.raises(RemoteError, match=TOLD):
            await driver.boot_installer(ID, MAC)

    drive(bmc, work)
    assert untouched(bmc)
