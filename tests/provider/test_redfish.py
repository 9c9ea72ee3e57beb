"""The Redfish driver against sushy-tools on loopback: each operation, and what each trouble leads to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from provider import configuration
from provider.errors import ProviderError, RemoteError
from provider.platforms.redfish import Redfish
from provider.platforms.redfish.power import Patience
from tests.provider import fake_bmc
from tests.provider.fake_bmc import MAC, PASSWORD, UUID, FakeBmc, lost, once

QUICK = Patience(power=5, again=1, grace=1, telling=0.5, post=3)
ID = f"server-0/{UUID}"


@pytest.fixture
def bmc() -> Iterator[FakeBmc]:
    with fake_bmc.running() as server:
        yield server


def drive(bmc: FakeBmc, work: Callable[[Redfish], Awaitable[Any]], **more: Any) -> list[str]:
    """Runs something with a driver; answers what it said."""
    said: list[str] = []

    async def say(text: str) -> None:
        said.append(text)

    settings, problems = configuration.parse({"bmcs": json.dumps({"server-0": bmc.settings(**more)})})
    assert problems == []

    async def run() -> None:
        async with Redfish(settings, say, patience=QUICK, timeout=5) as driver:
            await work(driver)

    asyncio.run(run())
    return said


def refusal(bmc: FakeBmc, work: Callable[[Redfish], Awaitable[Any]], **more: Any) -> str:
    """What it is refused with; it never holds a credential."""
    with pytest.raises(ProviderError) as caught:
        drive(bmc, work, **more)
    message = str(caught.value)
    assert message.startswith(f"server server-0 (BMC {bmc.address})")
    assert PASSWORD not in message and fake_bmc.USER not in message
    return message


async def install(driver: Redfish) -> None:
    await driver.boot_installer(ID, MAC.upper())


async def from_disk(driver: Redfish) -> None:
    await driver.boot_disk(ID)
    await driver.restart(ID)


async def state(driver: Redfish) -> None:
    await driver.power_state(ID)


# --- operations -----------------------------------------------------------------------------------------------------


def test_inventory(bmc: FakeBmc) -> None:
    bmc.machine.extra = {"Model": "R1", "SerialNumber": "S-1", "BiosVersion": "2.0", "Manufacturer": "ACME"}

    async def work(driver: Redfish) -> None:
        it = await driver.inventory("server-0")
        assert (it.identity, it.power, it.memory_mib, it.boot_mode) == (UUID, "Off", 16384, "uefi")
        assert (it.manufacturer, it.model, it.serial, it.bios_version) == ("ACME", "R1", "S-1", "2.0")
        assert list(it.nics) == [MAC]
        assert [disk.to_wire() for disk in it.disks] == [{"name": "vda", "sizeBytes": 64 << 30}]
        assert it.console == "127.0.0.1"

    drive(bmc, work)
    assert bmc.sessions == {}, "the session was left open"


def test_the_installer_is_booted_once_whether_the_server_is_on_or_off(bmc: FakeBmc) -> None:
    for _ in range(2):
        assert drive(bmc, install) == []
        assert drive(bmc, from_disk) == []
    assert bmc.machine.boots == ["Pxe", "Hdd", "Pxe", "Hdd"]
    assert bmc.machine.resets == ["On", "ForceRestart", "ForceRestart", "ForceRestart"]
    assert bmc.bodies[0]["Boot"]["BootSourceOverrideEnabled"] == "Once"


@pytest.mark.parametrize("offered", [("On", "ForceOff"), ("On", "ForceOff", "PowerCycle", "GracefulRestart")])
def test_only_resets_that_are_offered_are_asked_for(bmc: FakeBmc, offered: tuple[str, ...]) -> None:
    bmc.machine.power, bmc.machine.resets_offered = "On", offered
    drive(bmc, install)
    assert bmc.machine.boots == ["Pxe"] and set(bmc.machine.resets) <= set(offered)


def test_a_reset_that_is_not_offered_is_named(bmc: FakeBmc) -> None:
    bmc.machine.resets_offered = ("Nmi", "ForceOff")
    assert "offers none of the resets On, ForceOn, but ForceOff, Nmi" in refusal(bmc, install)


def test_virtual_media_and_uefi_http(bmc: FakeBmc) -> None:
    image = "http://boot.facility.test/ipxe.iso"
    assert drive(bmc, install, bootMethod="virtual-media", bootImage=image) == []
    assert bmc.machine.image == image and bmc.machine.boots == ["Cd"]
    drive(bmc, from_disk, bootMethod="virtual-media", bootImage=image)
    assert bmc.machine.image is None and bmc.machine.boots == ["Cd", "Hdd"]
    url = "http://boot.facility.test/snp.efi"
    drive(bmc, install, bootMethod="uefi-http", bootUrl=url)
    assert bmc.bodies[-1]["Boot"]["HttpBootUri"] == url and bmc.machine.boots[-1] == "UefiHttp"


def test_the_boot_mode_is_sent_where_it_changes(bmc: FakeBmc) -> None:
    drive(bmc, install, bootMode="uefi")
    assert "BootSourceOverrideMode" not in bmc.bodies[-1]["Boot"]
    drive(bmc, from_disk)
    drive(bmc, install, bootMode="bios")
    assert bmc.bodies[-1]["Boot"]["BootSourceOverrideMode"] == "Legacy"


@pytest.mark.parametrize(
    ("manufacturer", "members"),
    [
        ("ACME", {"BootSourceOverrideTarget"}),
        ("Supermicro", {"BootSourceOverrideTarget", "BootSourceOverrideEnabled"}),
        (
            "American Megatrends International, LLC.",
            {"BootSourceOverrideTarget", "BootSourceOverrideEnabled", "BootSourceOverrideMode"},
        ),
    ],
)
def test_what_vendors_want_beside_the_target(bmc: FakeBmc, manufacturer: str, members: set[str]) -> None:
    bmc.machine.enabled, bmc.machine.target = "Once", "Hdd"
    bmc.machine.extra = {"Manufacturer": manufacturer}
    drive(bmc, install)
    assert set(bmc.bodies[0]["Boot"]) - {"HttpBootUri"} == members


def test_a_power_state_that_lags_behind_is_waited_for(bmc: FakeBmc) -> None:
    bmc.machine.lag = 1.5
    drive(bmc, install)
    assert bmc.machine.boots[0] == "Pxe" and bmc.machine.state() == "On"


def test_off_is_graceful_and_then_forced(bmc: FakeBmc) -> None:
    async def off(driver: Redfish) -> None:
        await driver.power_off(ID)

    bmc.machine.power = "On"
    assert drive(bmc, off) == [] and bmc.machine.resets == ["GracefulShutdown"]
    bmc.machine.power, bmc.machine.shuts_down = "On", False
    (said,) = drive(bmc, off)
    assert said.endswith("did not shut down within 1 s: it is switched off")
    assert bmc.machine.state() == "Off" and bmc.machine.resets[-1] == "ForceOff"
    drive(bmc, off)
    assert bmc.machine.resets[-1] == "ForceOff" and len(bmc.machine.resets) == 3


def test_a_server_that_never_goes_on_is_told(bmc: FakeBmc) -> None:
    bmc.machine.lag = 60
    assert "is still Off 5 s after it was asked to be On" in refusal(bmc, install)


def test_a_server_that_loses_its_power_at_once_boots_from_the_network_all_the_same(bmc: FakeBmc) -> None:
    bmc.machine.power_losses = 1
    drive(bmc, install)
    assert bmc.machine.boots == ["Pxe", "Pxe"] and bmc.machine.state() == "On"


# --- one-time boots -------------------------------------------------------------------------------------------------


def test_a_one_time_boot_that_is_refused_becomes_one_for_every_boot(bmc: FakeBmc) -> None:
    bmc.machine.refuses = ("Once", "Disabled")
    (said,) = drive(bmc, install)
    assert said.endswith("boots from the network every time until it is installed, not just once")
    assert bmc.machine.enabled == "Continuous"
    drive(bmc, from_disk)
    assert bmc.machine.boots == ["Pxe", "Hdd"]
    assert (bmc.machine.enabled, bmc.machine.target) == ("Continuous", "Hdd")


def test_a_one_time_boot_that_is_silently_dropped_is_seen(bmc: FakeBmc) -> None:
    bmc.machine.forgets = ("Once",)
    (said,) = drive(bmc, install)
    assert "every time" in said
    drive(bmc, from_disk)
    assert bmc.machine.boots == ["Pxe", "Hdd"] and bmc.machine.enabled == "Disabled"


def test_without_overrides_the_boot_order_is_changed_and_restored(bmc: FakeBmc) -> None:
    bmc.machine.refuses, bmc.machine.order = ("Once", "Continuous"), ["Hdd", "Cd", "Pxe"]
    (said,) = drive(bmc, install)
    assert said.endswith("has the network first in its boot order until it is installed")
    assert bmc.machine.order == ["Pxe", "Hdd", "Cd"]
    (said,) = drive(bmc, from_disk)
    assert said.endswith("has its former boot order again")
    assert bmc.machine.boots == ["Pxe", "Hdd"] and bmc.machine.order == ["Hdd", "Cd", "Pxe"]


def test_of_several_interfaces_the_one_with_the_mac_address_comes_first(bmc: FakeBmc) -> None:
    def option(mac: str) -> dict[str, str]:
        return {"Alias": "Pxe", "UefiDevicePath": f"PciRoot(0x0)/Pci(0x3,0x0)/MAC({mac},0x1)"}

    bmc.machine.refuses = ("Once", "Continuous")
    bmc.machine.options = {"Boot0001": option("525400999999"), "Boot0003": option(MAC.replace(":", ""))}
    bmc.machine.order = ["Hdd", "Pxe", "Boot0001", "Boot0003"]
    drive(bmc, install)
    assert bmc.machine.order == ["Boot0003", "Hdd", "Pxe", "Boot0001"], "the others lead elsewhere"
    drive(bmc, from_disk)
    # What does not tell its address may be it; what tells another one is not.
    bmc.machine.order = ["Hdd", "Boot0001", "Pxe"]
    drive(bmc, install)
    assert bmc.machine.order == ["Pxe", "Hdd", "Boot0001"]
    drive(bmc, from_disk)
    bmc.machine.order = ["Hdd", "Boot0001"]
    assert "cannot be made to boot from the network" in refusal(bmc, install)


def test_a_server_that_cannot_be_made_to_boot_from_the_network(bmc: FakeBmc) -> None:
    bmc.machine.refuses, bmc.machine.forgets = ("Once",), ("Continuous",)
    message = refusal(bmc, install)
    assert "cannot be made to boot from the network" in message and bmc.machine.boots == []
    assert "Once is not in the list of acceptable values" in message
    assert "took Pxe (Continuous), but then said None (Disabled)" in message


def test_a_one_time_boot_that_was_passed_over_is_set_for_every_boot(bmc: FakeBmc) -> None:
    bmc.machine.passes_over, bmc.machine.progress = True, "None"
    said = drive(bmc, install)
    assert "passed over its one-time boot" in said[0]
    assert bmc.machine.boots == ["Hdd", "Pxe"]


def test_a_one_time_boot_an_earlier_attempt_left_is_set_for_every_boot(bmc: FakeBmc) -> None:
    bmc.machine.passes_over = True
    assert drive(bmc, install) == [], "this BMC does not tell"
    assert "did not take its one-time boot" in drive(bmc, install)[0]
    assert bmc.machine.boots == ["Hdd", "Pxe"]


def test_a_one_time_boot_that_is_used_up_and_not_taken_is_set_for_every_boot(bmc: FakeBmc) -> None:
    bmc.machine.uses_up = True
    assert drive(bmc, install) == [] and bmc.machine.boots == ["Hdd"], "this BMC lies"
    assert "did not take its one-time boot" in drive(bmc, install)[0]
    drive(bmc, from_disk)
    assert bmc.machine.boots == ["Hdd", "Pxe", "Hdd"] and bmc.machine.enabled == "Disabled"


def test_a_bmc_that_knows_one_time_boots_only(bmc: FakeBmc) -> None:
    bmc.machine.uses_up, bmc.machine.refuses = True, ("Continuous",)
    drive(bmc, install)
    bmc.machine.uses_up = False
    drive(bmc, install)
    assert bmc.machine.boots == ["Hdd", "Pxe"]


def test_a_boot_method_that_is_not_offered(bmc: FakeBmc) -> None:
    bmc.machine.targets_offered = ("None", "Hdd", "UefiHttp", "Cd")
    message = refusal(bmc, install)
    assert "does not offer Pxe, which `bootMethod: pxe` needs, but None, Hdd, UefiHttp, Cd" in message
    assert message.endswith("set `bootMethod` to uefi-http or virtual-media or live-iso")
    assert bmc.machine.resets == []


def test_an_override_that_cannot_be_withdrawn_is_told(bmc: FakeBmc) -> None:
    bmc.machine.enabled, bmc.machine.target, bmc.machine.forgets = "Continuous", "Pxe", ("Disabled",)
    bmc.machine.targets_offered = ("Pxe",)
    message = refusal(bmc, from_disk)
    assert "still boots from the network" in message and bmc.machine.resets == []
    assert "took Disabled, but then said Pxe (Continuous)" in message and "it does not offer that" in message


def test_a_lost_answer_to_a_reset_does_not_lead_to_the_disk(bmc: FakeBmc) -> None:
    bmc.machine.power = "On"
    bmc.faults = [lost("POST", "ComputerSystem.Reset", bmc, before=False)]
    drive(bmc, install)
    assert bmc.machine.boots[-1] == "Pxe"


# --- passing trouble ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "PATCH", "POST"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_bmc_is_asked_again(bmc: FakeBmc, method: str, status: int) -> None:
    end = {"GET": UUID, "PATCH": UUID, "POST": "Reset"}[method]
    bmc.faults = [once(method, end, status, {"Retry-After": "1"})]
    drive(bmc, install)
    assert bmc.machine.boots == ["Pxe"] and bmc.faults == []


def test_a_busy_session_service_is_asked_again_not_passed_by(bmc: FakeBmc) -> None:
    bmc.faults = [once("POST", "Sessions", 503)]
    drive(bmc, state)
    assert bmc.count("POST", "Sessions") == 2


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(("method", "end"), [("GET", UUID), ("PATCH", UUID), ("POST", "Sessions")])
def test_lost_connections(bmc: FakeBmc, method: str, end: str, before: bool) -> None:
    bmc.faults = [lost(method, end, bmc, before=before)]
    drive(bmc, install)
    assert bmc.machine.boots == ["Pxe"] and bmc.faults == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "iLO.2.14.UnableToModifyDuringSystemPOST"),
        (400, "iLO says InvalidOperationForSystemState"),
        (500, "IDRAC.2.5.SYS518"),
        (409, "Base.1.12.ActionParameterValueConflict"),
    ],
)
def test_refusals_that_mean_not_now(bmc: FakeBmc, status: int, words: str) -> None:
    bmc.faults = [once("PATCH", UUID, status, words=words), once("POST", "Reset", status, words=words)]
    drive(bmc, install)
    assert bmc.machine.boots == ["Pxe"] and bmc.faults == []


def test_a_session_that_is_lost_is_renewed(bmc: FakeBmc) -> None:
    async def work(driver: Redfish) -> None:
        await driver.power_state(ID)
        bmc.sessions.clear()
        assert await driver.power_state(ID) == "Off"

    drive(bmc, work)
    assert bmc.count("POST", "Sessions") == 2


def test_a_session_that_is_lost_again_and_again_is_renewed_as_often(bmc: FakeBmc) -> None:
    bmc.faults = [once("GET", UUID, 401) for _ in range(3)]
    drive(bmc, state)
    assert bmc.count("POST", "Sessions") == 3


def test_a_bmc_that_forgets_its_sessions_has_no_wrong_password(bmc: FakeBmc) -> None:
    bmc.faults = [once("GET", UUID, 401) for _ in range(100)]
    assert refusal(bmc, state).endswith("end those that nobody needs, or restart the BMC")


def test_a_bmc_without_sessions_takes_basic(bmc: FakeBmc) -> None:
    bmc.has_sessions = False
    drive(bmc, install)
    assert bmc.machine.boots == ["Pxe"]


def test_a_bmc_that_stays_busy_is_an_error_in_time(bmc: FakeBmc) -> None:
    bmc.faults = [once("GET", UUID, 503) for _ in range(100)]
    message = refusal(bmc, state)
    assert "asked for its power state: it answered HTTP 503: not now, and so it went for 5 s" in message
    assert message.endswith("look whether the BMC is in order; run the same again")


def test_a_bmc_that_is_not_there(bmc: FakeBmc) -> None:
    message = _no_bmc("https://127.0.0.1:1")
    assert "it refuses connections, and so it went for" in message
    assert "its name cannot be resolved" in _no_bmc("https://bmc.invalid")


def _no_bmc(address: str) -> str:
    entry = {"address": address, "username": "u", "password": "p"}
    settings, _ = configuration.parse({"bmcs": json.dumps({"server-0": entry})})

    async def run() -> None:
        async with Redfish(settings, timeout=1.5) as driver:
            await driver.inventory("server-0")

    with pytest.raises(RemoteError, match=f"server server-0 \\(BMC {address}\\)") as caught:
        asyncio.run(run())
    return str(caught.value)


# --- what somebody has to see to ------------------------------------------------------------------------------------


def test_a_wrong_password(bmc: FakeBmc) -> None:
    bmc.password = "another"
    message = refusal(bmc, state)
    assert "HTTP 401" in message and message.endswith("the user name or the password is wrong: correct them in `bmcs`")
    assert bmc.count("POST", "Sessions") == 1, "attempts lock accounts"


def test_an_account_that_may_not(bmc: FakeBmc) -> None:
    bmc.faults = [once("PATCH", UUID, 403)] * 2
    assert refusal(bmc, install).endswith("give it the role Operator or Administrator")


def test_no_system_and_several(bmc: FakeBmc) -> None:
    bmc.systems = []
    assert "has no System" in refusal(bmc, state)
    bmc.systems = [UUID, "blade-2"]
    assert refusal(bmc, state).endswith(f"has 2 Systems: set `systemId` in `bmcs` to one of {UUID}, blade-2")
    drive(bmc, state, systemId=UUID)
    drive(bmc, state, systemId=f"/redfish/v1/Systems/{UUID}/")
    assert f"correct `systemId` in `bmcs`: there is {UUID}, blade-2" in refusal(bmc, state, systemId="blade-3")


def test_another_machine_behind_the_address(bmc: FakeBmc) -> None:
    bmc.machine.uuid = "00000000-1111-2222-3333-444444444444"
    message = refusal(bmc, install)
    assert "is another machine now: it says 00000000-1111-2222-3333-444444444444" in message and UUID in message
    assert bmc.machine.resets == [] and bmc.bodies == []


def test_a_bmc_that_does_not_always_tell_the_uuid(bmc: FakeBmc) -> None:
    bmc.machine.extra = {"SerialNumber": "S-1"}

    async def by_serial(driver: Redfish) -> None:
        assert await driver.power_state("server-0/s-1") == "Off"

    async def by_another(driver: Redfish) -> None:
        await driver.boot_installer("server-0/s-2", MAC)

    drive(bmc, by_serial)
    assert "is another machine now" in refusal(bmc, by_another)
