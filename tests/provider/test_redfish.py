"""The Redfish driver against sushy-tools on loopback: each operation, and what each trouble leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from metal_ipi.provider.errors import ProviderError, RemoteError
from metal_ipi.provider.platforms.redfish import Redfish
from metal_ipi.provider.platforms.redfish.power import Patience
from tests.provider import fake_bmc
from tests.provider.fake_bmc import MAC, PASSWORD, USER, UUID, FakeBmc, Fault, answers, lost, once
from tests.provider.harness import settings_of

pytestmark = pytest.mark.usefixtures("no_waiting")

QUICK = Patience(power=5, again=1, grace=1, telling=0.5, post=3)
ID = f"server-0/{UUID}"
IMAGE = "http://boot.facility.test/ipxe.iso"
MEDIA = {"bootMethod": "virtual-media", "bootImage": IMAGE}
Work = Callable[[Redfish], Awaitable[Any]]


def drive(bmc: FakeBmc, work: Work, **more: Any) -> list[str]:
    """Runs something with a driver; answers what it said."""
    said: list[str] = []

    async def say(text: str) -> None:
        said.append(text)

    settings = settings_of(bmcs={"server-0": bmc.settings(**more)})

    async def run() -> None:
        async with Redfish(settings, say, patience=QUICK, timeout=5) as driver:
            await work(driver)

    asyncio.run(run())
    return said


def refusal(bmc: FakeBmc, work: Work, **more: Any) -> str:
    """What it is refused with; it never holds a credential."""
    with pytest.raises(ProviderError) as caught:
        drive(bmc, work, **more)
    message = str(caught.value)
    assert message.startswith(f"server server-0 (BMC {bmc.address})")
    assert PASSWORD not in message and USER not in message
    return message


async def install(driver: Redfish) -> None:
    await driver.boot_installer(ID, MAC.upper())


async def from_disk(driver: Redfish) -> None:
    await driver.boot_disk(ID)
    await driver.restart(ID)


async def state(driver: Redfish) -> None:
    await driver.power_state(ID)


async def off(driver: Redfish) -> None:
    await driver.power_off(ID)


# --- operations -----------------------------------------------------------------------------------------------------


def test_inventory(bmc: FakeBmc) -> None:
    bmc.machine.extra = {"Model": "R1", "SerialNumber": "S-1", "BiosVersion": "2.0", "Manufacturer": "ACME"}

    async def work(driver: Redfish) -> None:
        it = await driver.inventory("server-0")
        assert (it.identity, it.power, it.memory_mib, it.boot_mode) == (UUID, "Off", 16384, "uefi")
        assert (it.manufacturer, it.model, it.serial, it.bios_version) == ("ACME", "R1", "S-1", "2.0")
        assert [disk.to_wire() for disk in it.disks] == [{"name": "vda", "sizeBytes": 64 << 30}]
        assert (list(it.nics), it.console) == ([MAC], "127.0.0.1")

    drive(bmc, work)
    assert bmc.sessions == {}, "the session was left open"


def test_the_installer_is_booted_once_whether_the_server_is_on_or_off(bmc: FakeBmc) -> None:
    for _ in range(2):
        assert drive(bmc, install) == [] == drive(bmc, from_disk)
    assert bmc.machine.boots == ["Pxe", "Hdd", "Pxe", "Hdd"]
    assert bmc.machine.resets == ["On", "ForceRestart", "ForceRestart", "ForceRestart"]
    assert bmc.bodies[0]["Boot"]["BootSourceOverrideEnabled"] == "Once"


@pytest.mark.parametrize("offered", [("On", "ForceOff"), ("On", "ForceOff", "PowerCycle", "GracefulRestart")])
def test_only_resets_that_are_offered_are_asked_for(bmc: FakeBmc, offered: tuple[str, ...]) -> None:
    bmc.machine.power, bmc.machine.resets_offered = "On", offered
    drive(bmc, install)
    assert bmc.machine.boots == ["Pxe"] and set(bmc.machine.resets) <= set(offered)


def test_virtual_media_and_uefi_http(bmc: FakeBmc) -> None:
    assert drive(bmc, install, **MEDIA) == [] and bmc.machine.image == IMAGE
    drive(bmc, from_disk, **MEDIA)
    assert bmc.machine.image is None and bmc.machine.boots == ["Cd", "Hdd"]
    url = "http://boot.facility.test/snp.efi"
    drive(bmc, install, bootMethod="uefi-http", bootUrl=url)
    assert bmc.bodies[-1]["Boot"]["HttpBootUri"] == url and bmc.machine.boots[-1] == "UefiHttp"


_ENABLED, _MODE = "BootSourceOverrideEnabled", "BootSourceOverrideMode"


@pytest.mark.parametrize(
    ("manufacturer", "more", "members"),
    [
        ("ACME", {}, {}),
        ("ACME", {"bootMode": "uefi"}, {}),
        ("ACME", {"bootMode": "bios"}, {_MODE: "Legacy"}),
        ("Supermicro", {}, {_ENABLED: "Once"}),
        ("American Megatrends International, LLC.", {}, {_ENABLED: "Once", _MODE: "UEFI"}),
    ],
)
def test_what_is_sent_beside_the_target(
    bmc: FakeBmc, manufacturer: str, more: dict[str, str], members: dict[str, str]
) -> None:
    bmc.machine.enabled, bmc.machine.target = "Once", "Hdd"
    bmc.machine.extra = {"Manufacturer": manufacturer}
    drive(bmc, install, **more)
    sent = bmc.bodies[0]["Boot"]
    assert {key: sent[key] for key in sent if key != "HttpBootUri"} == {"BootSourceOverrideTarget": "Pxe", **members}


def test_off_is_graceful_and_then_forced(bmc: FakeBmc) -> None:
    bmc.machine.power = "On"
    assert drive(bmc, off) == [] and bmc.machine.resets == ["GracefulShutdown"]
    bmc.machine.power, bmc.machine.shuts_down = "On", False
    (said,) = drive(bmc, off)
    assert said.endswith("did not shut down within 1 s: it is switched off")
    assert bmc.machine.state() == "Off" and bmc.machine.resets[-1] == "ForceOff"
    drive(bmc, off)
    assert len(bmc.machine.resets) == 3, "it is off already"


@pytest.mark.parametrize(("kind", "count", "boots"), [("lag", 1.5, ["Pxe"]), ("power_losses", 1, ["Pxe", "Pxe"])])
def test_a_power_state_that_lags_behind_or_is_lost_is_waited_for(
    bmc: FakeBmc, kind: str, count: float, boots: list[str]
) -> None:
    setattr(bmc.machine, kind, count)
    drive(bmc, install)
    assert bmc.machine.boots[: len(boots)] == boots and bmc.machine.state() == "On"


# --- one-time boots -------------------------------------------------------------------------------------------------

_EVERY_TIME = "boots from the network every time until it is installed, not just once"
_NOT_TAKEN = "did not accept a one-time boot: now it is set for every boot"
_ONE_TIME_BOOTS: dict[str, tuple[dict[str, Any], str, list[str], list[str], str]] = {
    "refused": ({"refuses": ("Once", "Disabled")}, "ID", [_EVERY_TIME], ["Pxe", "Hdd"], "Continuous Hdd"),
    "dropped": ({"forgets": ("Once",)}, "ID", [_EVERY_TIME], ["Pxe", "Hdd"], "Disabled Pxe"),
    "passed over, and told": (
        {"passes_over": True, "progress": "None"}, "I",
        ["ignored its one-time boot: now it is set for every boot", _EVERY_TIME],
        ["Hdd", "Pxe"], "Continuous Pxe",
    ),
    "passed over by an earlier attempt": (
        {"passes_over": True}, "II", [_NOT_TAKEN, _EVERY_TIME], ["Hdd", "Pxe"], "Continuous Pxe",
    ),
    "used up, but not taken": (
        {"uses_up": True}, "IID", [_NOT_TAKEN, _EVERY_TIME], ["Hdd", "Pxe", "Hdd"], "Disabled Pxe",
    ),
    "the only kind": (
        {"uses_up": True, "refuses": ("Continuous",)}, "II", [_NOT_TAKEN], ["Hdd", "Hdd"], "Disabled None",
    ),
    "without overrides the order is changed": (
        {"refuses": ("Once", "Continuous"), "order": ["Hdd", "Cd", "Pxe"]}, "ID",
        ["has the network first in its boot order until it is installed", "has its former boot order again"],
        ["Pxe", "Hdd"], "Disabled None",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", _ONE_TIME_BOOTS.values(), ids=_ONE_TIME_BOOTS)
def test_one_time_boots(bmc: FakeBmc, case: tuple[dict[str, Any], str, list[str], list[str], str]) -> None:
    """What the BMC does, what is asked of it (installer, disk), what is said, what it boots, and its override then."""
    does, asked, told, boots, override = case
    for name, value in does.items():
        setattr(bmc.machine, name, value)
    said = [text for each in asked for text in drive(bmc, install if each == "I" else from_disk)]
    assert [text.removeprefix(f"server server-0 (BMC {bmc.address}) ") for text in said] == told
    assert bmc.machine.boots == boots and f"{bmc.machine.enabled} {bmc.machine.target}" == override
    assert bmc.machine.order == does.get("order")


def test_of_several_interfaces_the_one_with_the_mac_address_comes_first(bmc: FakeBmc) -> None:
    def option(mac: str) -> dict[str, str]:
        return {"Alias": "Pxe", "UefiDevicePath": f"PciRoot(0x0)/Pci(0x3,0x0)/MAC({mac},0x1)"}

    bmc.machine.refuses = ("Once", "Continuous")
    bmc.machine.options = {"Boot0001": option("525400999999"), "Boot0003": option(MAC.replace(":", ""))}
    for order, then in (
        (["Hdd", "Pxe", "Boot0001", "Boot0003"], ["Boot0003", "Hdd", "Pxe", "Boot0001"]),
        # What does not tell its address may be it; what tells another one is not.
        (["Hdd", "Boot0001", "Pxe"], ["Pxe", "Hdd", "Boot0001"]),
    ):
        bmc.machine.order = order
        drive(bmc, install)
        assert bmc.machine.order == then
        drive(bmc, from_disk)
    bmc.machine.order = ["Hdd", "Boot0001"]
    assert "cannot be made to boot from the network" in refusal(bmc, install)


# --- passing trouble ------------------------------------------------------------------------------------------------

_LATER = {"Retry-After": "1"}
_PASSING: list[list[Fault]] = [
    *([once(method, end, status, _LATER)] for method, end in (("GET", UUID), ("PATCH", UUID), ("POST", "Reset"))
      for status in (429, 503)),
    *([lost(method, end, before=before)] for method, end in (("GET", UUID), ("PATCH", UUID), ("POST", "Sessions"))
      for before in (True, False)),
    [once("POST", "Sessions", 503)],
    [once("GET", UUID, 401) for _ in range(3)],
    [answers(UUID, ["busy"], 503), answers(UUID, {"error": "busy"}, 503)],
    *([once("PATCH", UUID, status, words=words), once("POST", "Reset", status, words=words)] for status, words in (
        (400, "iLO.2.14.UnableToModifyDuringSystemPOST"), (400, "iLO says InvalidOperationForSystemState"),
        (500, "IDRAC.2.5.SYS518"), (409, "Base.1.12.ActionParameterValueConflict"))),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(_PASSING)))
def test_what_passes_is_asked_again(bmc: FakeBmc, number: int) -> None:
    bmc.faults = list(_PASSING[number])
    drive(bmc, install)
    assert bmc.machine.boots == ["Pxe"] and bmc.faults == []
    assert not any("Authorization" in headers for headers in bmc.headers), "a session was made in the end"


def test_a_lost_answer_to_a_reset_does_not_lead_to_the_disk(bmc: FakeBmc) -> None:
    bmc.machine.power, bmc.faults = "On", [lost("POST", "ComputerSystem.Reset", before=False)]
    drive(bmc, install)
    assert bmc.machine.boots[-1] == "Pxe"


def test_a_session_that_is_lost_is_renewed(bmc: FakeBmc) -> None:
    async def work(driver: Redfish) -> None:
        await driver.power_state(ID)
        bmc.sessions.clear()
        assert await driver.power_state(ID) == "Off"

    drive(bmc, work)
    assert bmc.count("POST", "Sessions") == 2


def test_a_bmc_without_sessions_takes_basic(bmc: FakeBmc) -> None:
    bmc.has_sessions = False
    drive(bmc, install)
    assert bmc.machine.boots == ["Pxe"]


# --- what somebody has to see to ------------------------------------------------------------------------------------

_NOT_REDFISH = [": its answer does not conform to Redfish: ", "update the BMC's firmware"]
_WORDS = f"cannot read {PASSWORD} of {USER}"
_OTHER = "00000000-1111-2222-3333-444444444444"
_REFUSALS: dict[str, tuple[dict[str, Any], list[Fault], Work, dict[str, Any], list[str]]] = {
    "busy for too long": (
        {}, [once("GET", UUID, 503)] * 99, state, {},
        ["asked for its power state: it answered HTTP 503: not now, repeatedly for 5 s",
         "check the BMC; then run the same command again"],
    ),
    "forgets its sessions": (
        {}, [once("GET", UUID, 401)] * 99, state, {}, ["end sessions that are not needed, or restart the BMC"],
    ),
    "account": ({}, [once("PATCH", UUID, 403)] * 2, install, {}, ["give it the role Operator or Administrator"]),
    "stays off": ({"lag": 60}, [], install, {}, ["is still Off 5 s after it was asked to change to On", "to go on"]),
    "reset that is not offered": (
        {"resets_offered": ("Nmi", "ForceOff")}, [], install, {},
        ["offers none of the resets On, ForceOn, but ForceOff, Nmi", "or its licence"],
    ),
    "boot method that is not offered": (
        {"targets_offered": ("None", "Hdd", "UefiHttp", "Cd")}, [], install, {},
        ["does not offer Pxe, which `bootMethod: pxe` needs, but None, Hdd, UefiHttp, Cd",
         "set `bootMethod` to uefi-http or virtual-media or live-iso"],
    ),
    "no boot from the network": (
        {"refuses": ("Once",), "forgets": ("Continuous",)}, [], install, {},
        ["cannot be made to boot from the network", "Once is not in the list of acceptable values",
         "accepted Pxe (Continuous), but then reported None (Disabled)", "by hand"],
    ),
    "override that stays": (
        {"enabled": "Continuous", "target": "Pxe", "forgets": ("Disabled",), "targets_offered": ("Pxe",)}, [],
        from_disk, {},
        ["still boots from the network", "Disabled, but then reported Pxe (Continuous)", "it does not support that",
         "run the same command again"],
    ),
    "another machine": (
        {"uuid": _OTHER}, [], install, {}, [f"is another machine now: it reports {_OTHER}", UUID, "run up again"],
    ),
    "credentials in words": (
        {}, [once("GET", UUID, 400, words=_WORDS)], state, {},
        ["it answered HTTP 400: cannot read [secret] of [secret]"],
    ),
    "credentials in words of a drive": (
        {}, [once("POST", "InsertMedia", 400, words=_WORDS)], install, MEDIA,
        ["cannot read [secret] of [secret]", IMAGE, "`bootMethod` in `bmcs`"],
    ),
    "a long quotation": (
        {}, [once("GET", UUID, 400, words="x" * 295 + PASSWORD + "y" * 999)], state, {},
        ["HTTP 400: " + "x" * 295 + "[secr ..."],
    ),
    "a refusal in other words than Redfish's": (
        {}, [answers(UUID, [f"not {USER}"], 403)], state, {},
        ['it answered HTTP 403: ["not [secret]"]; the account may not do this', "Operator or Administrator"],
    ),
    "a list": ({}, [answers(UUID, [])], install, {}, _NOT_REDFISH),
    "a text": ({}, [answers(UUID, "no")], install, {}, _NOT_REDFISH),
    "members of other kinds": ({}, [answers(UUID, {"Boot": "no"})], install, {}, _NOT_REDFISH),
    "actions in a list": (
        {}, [answers(UUID, {"Id": "1", "Name": "x", "UUID": UUID, "Actions": [], "PowerState": "On"})], install, {},
        _NOT_REDFISH,
    ),
    "boot options without addresses": (
        {"refuses": ("Once", "Continuous"), "order": ["Hdd", "Pxe"]},
        [answers("BootOptions", {"Members": [{"Name": "of no address"}]})], install, {},
        ["asked to boot from the network first: its answer does not conform to Redfish: KeyError: '@odata.id'", ""],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", _REFUSALS.values(), ids=_REFUSALS)
def test_what_does_not_pass_is_told(
    bmc: FakeBmc, case: tuple[dict[str, Any], list[Fault], Work, dict[str, Any], list[str]]
) -> None:
    """What the BMC does, its faults, what is asked of it, its settings, and parts of the message; the last ends it."""
    does, faults, work, more, told = case
    for name, value in does.items():
        setattr(bmc.machine, name, value)
    bmc.faults = list(faults)
    message = refusal(bmc, work, **more)
    assert [part for part in told if part not in message] == [] and message.endswith(told[-1])
    assert bmc.machine.boots == [] or does.get("lag"), "nothing was booted"


def test_a_wrong_password(bmc: FakeBmc) -> None:
    bmc.password = "another"
    message = refusal(bmc, state)
    assert "HTTP 401" in message and message.endswith("the user name or the password is wrong: correct them in `bmcs`")
    assert bmc.count("POST", "Sessions") == 1, "attempts lock accounts"


def test_only_the_words_of_the_bmc_are_blotted_out(bmc: FakeBmc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_bmc, "USER", "server")
    bmc.faults = [once("GET", UUID, 400, words="server may not")]
    with pytest.raises(ProviderError) as caught:
        drive(bmc, state, username="server")
    assert str(caught.value) == (
        f"server server-0 (BMC {bmc.address}), asked for its power state: it answered HTTP 400: [secret] may not"
    )


def test_no_system_and_several(bmc: FakeBmc) -> None:
    bmc.systems = []
    assert "has no System" in refusal(bmc, state)
    bmc.systems = [UUID, "blade-2"]
    assert refusal(bmc, state).endswith(f"has 2 Systems: set `systemId` in `bmcs` to one of {UUID}, blade-2")
    drive(bmc, state, systemId=UUID)
    drive(bmc, state, systemId=f"/redfish/v1/Systems/{UUID}/")
    assert f"correct `systemId` in `bmcs`: it has {UUID}, blade-2" in refusal(bmc, state, systemId="blade-3")


def test_a_bmc_that_does_not_always_tell_the_uuid(bmc: FakeBmc) -> None:
    bmc.machine.extra = {"SerialNumber": "S-1"}

    async def by_serial(driver: Redfish) -> None:
        assert await driver.power_state("server-0/s-1") == "Off"

    async def by_another(driver: Redfish) -> None:
        await driver.boot_installer("server-0/s-2", MAC)

    drive(bmc, by_serial)
    assert "is another machine now" in refusal(bmc, by_another)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://127.0.0.1:1", "it refuses connections, repeatedly for"),
        ("https://bmc.invalid", "its name cannot be resolved"),
    ],
)
async def test_a_bmc_that_is_not_there(address: str, told: str) -> None:
    entry = {"address": address, "username": "u", "password": "p"}
    settings = settings_of(bmcs={"server-0": entry})
    async with Redfish(settings, timeout=1.5) as driver:
        with pytest.raises(RemoteError, match=rf"server server-0 \(BMC {address}\).*{told}"):
            await driver.inventory("server-0")
