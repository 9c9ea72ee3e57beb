"""RedfishMachine, and EphemeralMachine on a server that is lent, against a BMC and an artifact host on loopback."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.provider.errors import InitFailed, InvalidInputs, RemoteError
from metal_ipi.provider.platforms.registry import is_gone, platform_of
from metal_ipi.provider.values import UNKNOWN, has_unknown
from tests.provider import fake_bmc
from tests.provider.fake_bmc import MAC, PASSWORD, UUID, FakeBmc, once
from tests.provider.harness import Harness, Resource, configured, settings_of

pytestmark = pytest.mark.usefixtures("no_waiting")

CLAIM: dict[str, Any] = {
    "server": "worker-0",
    "hostname": "lab-worker-0",
    "mac": MAC.upper(),
    "publicIpv4": "192.0.2.97",
    "accept": "empty",
    "timeoutSeconds": 3,
}
SCRIPT = "#!ipxe\nkernel http://boot.facility.test/unguessable/kernel\n"
LOAN: dict[str, Any] = {
    "platform": "redfish",
    "server": "worker-0",
    "hostname": "lab-bootstrap",
    "mac": MAC,
    "publicIpv4": "192.0.2.97",
    "script": SCRIPT,
    "chain": "#!ipxe\nexit\n",
    "accept": "empty",
    "timeoutSeconds": 20,
}
FILE = f"mac-{MAC.replace(':', '-')}.ipxe"
_SOMEBODYS = r"is On, and it may run something .* set `consent: wipe` for this server"


async def harness(bmc: FakeBmc, artifacts: dict[str, Any] | None = None, **more: Any) -> Harness:
    config: dict[str, Any] = {"bmcs": {"worker-0": bmc.settings(**more)}}
    made = Harness(config if artifacts is None else {**config, "artifacts": artifacts})
    await made.configure()
    return made


@pytest.fixture
async def it(bmc: FakeBmc) -> Resource:
    return Resource(await harness(bmc), "RedfishMachine")


@pytest.fixture
async def loan(bmc: FakeBmc, artifact_host: dict[str, Any]) -> AsyncGenerator[Resource]:
    yield Resource(await harness(bmc, artifact_host), "EphemeralMachine")


# --- RedfishMachine -------------------------------------------------------------------------------------------------


async def test_claim_look_and_switch_off(it: Resource, bmc: FakeBmc) -> None:
    state = await it.up(CLAIM)
    assert it.id == state["machineId"] == f"worker-0/{UUID}"
    assert (state["memoryMib"], state["nics"], state["bootMode"]) == (16384, [MAC], "uefi")
    assert state["disks"] == [{"name": "vda", "sizeBytes": 64 << 30}]
    assert (state["publicIpv4"], state["privateIpv4"]) == ("192.0.2.97", "192.0.2.97")
    assert bmc.machine.resets == [] and bmc.bodies == []
    assert PASSWORD not in repr(state) + repr(it.harness.log.messages) and fake_bmc.USER not in repr(state)
    # What runs meanwhile is ours: nothing is claimed again.
    bmc.machine.power = "On"
    assert await it.changes(CLAIM) == [] and await it.changes({**CLAIM, "accept": "wipe"}) == []
    bmc.machine.extra = {"BiosVersion": "2.1"}
    await it.refresh()
    assert it.state["biosVersion"] == "2.1" and it.id
    changed = {**CLAIM, "hostname": "other", "minimumMemoryMib": 8192}
    assert await it.changes(changed) == ["hostname", "minimumMemoryMib"]
    await it.up(changed)
    assert (await it.diff({**CLAIM, "server": "worker-1"})).replaces == ["server"]
    bmc.machine.enabled, bmc.machine.target = "Continuous", "Pxe"
    await it.delete()
    assert bmc.machine.resets == ["GracefulShutdown"] and bmc.machine.enabled == "Disabled"
    await it.delete()
    assert bmc.machine.state() == "Off"


async def test_a_server_that_may_be_somebodys_is_refused(
    bmc: FakeBmc, artifact_host: dict[str, Any], tmp_path: Path
) -> None:
    """A boot script that was left does not make it ours."""
    it = Resource(await harness(bmc, artifact_host), "RedfishMachine")
    (tmp_path / "artifacts/boot").mkdir(parents=True)
    (tmp_path / "artifacts/boot" / FILE).write_text(SCRIPT)
    bmc.machine.power = "On"
    with pytest.raises(InvalidInputs, match=_SOMEBODYS):
        await it.up(CLAIM)
    await it.up({**CLAIM, "accept": "wipe"})
    assert it.id and bmc.machine.resets == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"mac": "52:54:00:00:00:01"}, f"no network interface with .* 52:54:00:00:00:01, but {MAC}: correct"),
        ({"minimumMemoryMib": 32768}, "has 16384 MiB of memory, and needs 32768"),
        ({"server": "worker-9"}, r"server worker-9 is not in `bmcs` .*; known are worker-0"),
    ],
)
async def test_the_wrong_server(it: Resource, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputs, match=told):
        await it.up({**CLAIM, **changes})


async def test_a_server_that_does_not_tell_of_its_interfaces(it: Resource, bmc: FakeBmc) -> None:
    bmc.machine.nics = []
    await it.up(CLAIM)
    assert it.harness.log.messages[-1].endswith("does not report its interfaces: not checked")


async def test_a_server_is_never_forgotten_and_never_mistaken(it: Resource, bmc: FakeBmc) -> None:
    await it.up(CLAIM)
    bmc.faults = [once("GET", UUID, 503) for _ in range(1000)]
    for operation in (it.refresh, it.delete):
        with pytest.raises(RemoteError, match=r"server worker-0 .* HTTP 503"):
            await operation()
    assert it.id
    bmc.faults = []
    bmc.machine.uuid, bmc.machine.power = "11111111-2222-3333-4444-555555555555", "On"
    for operation in (it.refresh, it.delete, lambda: it.up({**CLAIM, "hostname": "other"})):
        with pytest.raises(RemoteError, match=f"it reports {bmc.machine.uuid} .* was claimed is {UUID}"):
            await operation()
    assert bmc.machine.resets == []


async def test_a_server_that_was_taken_out_of_the_list_cannot_be_switched_off(it: Resource, bmc: FakeBmc) -> None:
    await it.up(CLAIM)
    it.harness = (await configured("RedfishMachine", bmcs={"worker-1": bmc.settings()})).harness
    with pytest.raises(InvalidInputs, match=r"worker-0 cannot be switched off: .* Add it again; or .* state delete"):
        await it.delete()
    assert it.id and bmc.machine.resets == []


async def test_a_server_is_one_machine_of_the_stack(it: Resource) -> None:
    await it.up(CLAIM)
    two = Resource(it.harness, "RedfishMachine", "two")
    with pytest.raises(InvalidInputs, match="server worker-0 is wanted twice: by it and by two; give each"):
        await two.up(CLAIM)
    with pytest.raises(InvalidInputs, match="wanted twice"):
        await two.preview(CLAIM)
    # One that is moved to another server leaves its own to others.
    await it.diff({**CLAIM, "server": "worker-1"})
    await two.up(CLAIM)


async def test_check_and_preview_contact_nobody(it: Resource, bmc: FakeBmc) -> None:
    wrong = {**CLAIM, "mac": "x", "accept": "yes", "server": "a/b", "publicIpv4": "x", "sever": "x"}
    problems = await it.check(wrong)
    assert [problem.split(" ")[0] for problem in problems] == ["sever", "server", "mac", "publicIpv4", "accept"]
    assert await it.check({**CLAIM, "publicIpv4": UNKNOWN}) == []
    preview = await it.preview(CLAIM)
    assert has_unknown(preview["machineId"]) and preview["privateIpv4"] == "192.0.2.97"
    assert bmc.requests == []


# --- EphemeralMachine -----------------------------------------------------------------------------------------------


async def test_a_server_is_lent_and_given_back(loan: Resource, bmc: FakeBmc, tmp_path: Path) -> None:
    boot, known = tmp_path / "artifacts/boot", settings_of(**loan.harness.config)
    # The worker that will live on it is claimed before.
    worker = Resource(loan.harness, "RedfishMachine", "worker-0")
    await worker.up(CLAIM)
    state = await loan.up(LOAN)
    machine = state["machineId"]
    assert await worker.changes(CLAIM) == []
    assert (boot / FILE).read_text() == SCRIPT and (boot / "boot.ipxe").read_text() == LOAN["chain"]
    assert bmc.machine.boots == ["Pxe"] and state["state"] == "active" and state["present"] is True
    assert machine.startswith(f"worker-0/{UUID}/bootstrap/{MAC}/")
    assert (state["publicIpv4"], state["privateIpv4"]) == ("192.0.2.97", "192.0.2.97")
    assert platform_of(machine, known) == "redfish" and not await is_gone(machine, known)
    await loan.refresh()
    assert await loan.changes({**LOAN, "script": "other"}) == [] and loan.state["publicIpv4"] == "192.0.2.97"

    removal = Resource(loan.harness, "Removal")
    removed = {"machineId": machine, "platform": "redfish", "timeoutSeconds": 20}
    await removal.up(removed)
    assert bmc.machine.resets[-1] == "ForceOff" and bmc.machine.state() == "Off" and not boot.exists()
    assert await is_gone(machine, known)
    await loan.refresh()
    assert loan.id and loan.state["present"] is False and await loan.changes(LOAN) == []
    # The server is a worker now, being installed: taking the loan away once more leaves it alone.
    boot.mkdir()
    (boot / FILE).write_text("#!ipxe\nthe worker's\n")
    bmc.machine.power, resets = "On", len(bmc.machine.resets)
    await removal.up({**removed, "triggers": ["again"]})
    await loan.delete()
    assert len(bmc.machine.resets) == resets and (boot / FILE).exists()
    assert await is_gone(f"worker-0/{UUID}", known) is False


async def test_a_loan_that_a_kill_broke_off_goes_on(loan: Resource, bmc: FakeBmc, tmp_path: Path) -> None:
    # Not started: the engine keeps it, and the next up starts it.
    bmc.faults = [once("POST", "ComputerSystem.Reset", 403)] * 2
    with pytest.raises(InitFailed, match="role Operator"):
        await loan.up(LOAN)
    assert loan.id and bmc.machine.boots == []
    await loan.refresh()
    assert await loan.changes(LOAN) == ["state"]
    await loan.up(LOAN)
    assert bmc.machine.boots == ["Pxe"] and loan.state["state"] == "active"
    # Killed before the state was written: it runs already, and that is ours.
    again = Resource(loan.harness, "EphemeralMachine")
    await again.up(LOAN)
    assert bmc.machine.boots == ["Pxe", "Pxe"] and again.state["machineId"] == loan.state["machineId"]
    # Killed between off and withdrawn: the rest is done.
    bmc.machine.power, bmc.machine.pending = "Off", None
    await again.delete()
    assert not (tmp_path / "artifacts/boot").exists()


async def test_a_server_in_use_is_not_lent(loan: Resource, bmc: FakeBmc, tmp_path: Path) -> None:
    bmc.machine.power = "On"
    with pytest.raises(InvalidInputs, match=_SOMEBODYS):
        await loan.up(LOAN)
    assert bmc.machine.resets == [] and not (tmp_path / "artifacts/boot").exists()
    await loan.up({**LOAN, "accept": "wipe"})
    assert bmc.machine.boots == ["Pxe"]


async def test_a_loan_takes_no_inputs_of_metals(bmc: FakeBmc) -> None:
    it = Resource(await harness(bmc), "EphemeralMachine")
    problems = await it.check({**LOAN, "plan": "c3.small.x86", "bgp": True, "mac": "x", "script": UNKNOWN})
    assert [problem.split(" ")[0] for problem in problems] == ["plan", "bgp", "mac"]
    with pytest.raises(InvalidInputs, match="set `artifacts` of the metal-ipi provider"):
        await it.up(LOAN)
    assert bmc.machine.resets == []
