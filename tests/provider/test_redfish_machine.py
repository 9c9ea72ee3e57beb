"""RedfishMachine, and EphemeralMachine on a server that is lent, against a BMC and an artifact host on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provider import configuration
from provider.errors import InitFailed, InvalidInputs, RemoteError
from provider.platforms.registry import is_gone, platform_of
from provider.values import UNKNOWN, has_unknown
from tests.provider import fake_bmc
from tests.provider import ssh_servers as ssh
from tests.provider.fake_bmc import MAC, PASSWORD, UUID, FakeBmc, once
from tests.provider.harness import Harness, Resource

HOST, CLIENT = ssh.key(), ssh.key()
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


@pytest.fixture
def bmc() -> Iterator[FakeBmc]:
    with fake_bmc.running() as server:
        yield server


async def harness(bmc: FakeBmc, artifacts: dict[str, Any] | None = None, **more: Any) -> Harness:
    config: dict[str, Any] = {"bmcs": {"worker-0": bmc.settings(**more)}}
    made = Harness(config if artifacts is None else {**config, "artifacts": artifacts})
    await made.configure()
    return made


# --- RedfishMachine -------------------------------------------------------------------------------------------------


def test_claim_look_and_switch_off(bmc: FakeBmc) -> None:
    async def run() -> None:
        it = Resource(await harness(bmc), "RedfishMachine")
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

    asyncio.run(run())


def test_a_server_that_may_be_somebodys_is_refused(bmc: FakeBmc) -> None:
    async def run() -> None:
        it = Resource(await harness(bmc), "RedfishMachine")
        bmc.machine.power = "On"
        with pytest.raises(InvalidInputs, match=r"is On, and nothing shows .* set `consent: wipe` of this server"):
            await it.up(CLAIM)
        assert bmc.machine.resets == []
        await it.up({**CLAIM, "accept": "wipe"})
        assert it.id and bmc.machine.resets == []

    asyncio.run(run())


def test_a_boot_script_that_was_left_does_not_make_a_server_ours(bmc: FakeBmc, tmp_path: Path) -> None:
    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            it = Resource(await harness(bmc, artifacts), "RedfishMachine")
            bmc.machine.power = "On"
            (tmp_path / "artifacts/boot").mkdir(parents=True)
            (tmp_path / "artifacts/boot" / FILE).write_text(SCRIPT)
            with pytest.raises(InvalidInputs, match=r"is On, and nothing shows .* set `consent: wipe` of this server"):
                await it.up(CLAIM)
            bmc.machine.power = "Off"
            await it.up(CLAIM)

    asyncio.run(run())


def test_the_wrong_server(bmc: FakeBmc) -> None:
    async def run() -> None:
        it = Resource(await harness(bmc), "RedfishMachine")
        with pytest.raises(InvalidInputs, match=f"no network interface with .* 52:54:00:00:00:01, but {MAC}: correct"):
            await it.up({**CLAIM, "mac": "52:54:00:00:00:01"})
        with pytest.raises(InvalidInputs, match="has 16384 MiB of memory, and needs 32768"):
            await it.up({**CLAIM, "minimumMemoryMib": 32768})
        with pytest.raises(InvalidInputs, match=r"server worker-9 is not in `bmcs` .*; known are worker-0"):
            await Resource(it.harness, "RedfishMachine", "nine").up({**CLAIM, "server": "worker-9"})
        bmc.machine.nics = []
        await it.up(CLAIM)
        assert it.harness.log.messages[-1].endswith("does not tell of its interfaces: not checked")

    asyncio.run(run())


def test_a_server_is_never_forgotten_and_never_mistaken(bmc: FakeBmc) -> None:
    async def run() -> None:
        it = Resource(await harness(bmc), "RedfishMachine")
        await it.up(CLAIM)
        bmc.faults = [once("GET", UUID, 503) for _ in range(1000)]
        for operation in (it.refresh, it.delete):
            with pytest.raises(RemoteError, match=r"server worker-0 .* HTTP 503"):
                await operation()
        assert it.id
        bmc.faults = []
        bmc.machine.uuid, bmc.machine.power = "11111111-2222-3333-4444-555555555555", "On"
        for operation in (it.refresh, it.delete, lambda: it.up({**CLAIM, "hostname": "other"})):
            with pytest.raises(RemoteError, match=f"it says {bmc.machine.uuid} .* was claimed is {UUID}"):
                await operation()
        assert bmc.machine.resets == []

    asyncio.run(run())


def test_a_server_that_was_taken_out_of_the_list_cannot_be_switched_off(bmc: FakeBmc) -> None:
    async def run() -> None:
        it = Resource(await harness(bmc), "RedfishMachine")
        await it.up(CLAIM)
        it.harness = Harness({"bmcs": {"worker-1": bmc.settings()}})
        await it.harness.configure()
        with pytest.raises(InvalidInputs, match=r"worker-0 cannot be switched off: .* Put it back; or .* state delete"):
            await it.delete()
        assert it.id and bmc.machine.resets == []

    asyncio.run(run())


def test_a_server_is_one_machine_of_the_stack(bmc: FakeBmc) -> None:
    async def run() -> None:
        one = Resource(await harness(bmc), "RedfishMachine", "one")
        await one.up(CLAIM)
        two = Resource(one.harness, "RedfishMachine", "two")
        with pytest.raises(InvalidInputs, match="server worker-0 is wanted twice: by one and by two; give each"):
            await two.up(CLAIM)
        with pytest.raises(InvalidInputs, match="wanted twice"):
            await two.preview(CLAIM)
        # One that is moved to another server leaves its own to others.
        await one.diff({**CLAIM, "server": "worker-1"})
        await two.up(CLAIM)

    asyncio.run(run())


def test_check_and_preview_contact_nobody(bmc: FakeBmc) -> None:
    async def run() -> None:
        it = Resource(await harness(bmc), "RedfishMachine")
        wrong = {**CLAIM, "mac": "x", "accept": "yes", "server": "a/b", "publicIpv4": "x", "sever": "x"}
        problems = await it.check(wrong)
        assert [problem.split(" ")[0] for problem in problems] == ["sever", "server", "mac", "publicIpv4", "accept"]
        assert await it.check({**CLAIM, "publicIpv4": UNKNOWN}) == []
        preview = await it.preview(CLAIM)
        assert has_unknown(preview["machineId"]) and preview["privateIpv4"] == "192.0.2.97"
        assert bmc.requests == []

    asyncio.run(run())


# --- EphemeralMachine -----------------------------------------------------------------------------------------------


def test_a_server_is_lent_and_given_back(bmc: FakeBmc, tmp_path: Path) -> None:
    boot = tmp_path / "artifacts/boot"

    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            made = await harness(bmc, artifacts)
            settings, _ = configuration.parse({key: json.dumps(value) for key, value in made.config.items()})
            # The worker that will live on it is claimed before.
            worker = Resource(made, "RedfishMachine", "worker-0")
            await worker.up(CLAIM)
            it = Resource(made, "EphemeralMachine")
            state = await it.up(LOAN)
            assert await worker.changes(CLAIM) == []
            assert (boot / FILE).read_text() == SCRIPT and (boot / "boot.ipxe").read_text() == LOAN["chain"]
            assert bmc.machine.boots == ["Pxe"] and state["state"] == "active" and state["present"] is True
            assert state["machineId"].startswith(f"worker-0/{UUID}/bootstrap/{MAC}/")
            assert (state["publicIpv4"], state["privateIpv4"]) == ("192.0.2.97", "192.0.2.97")
            assert platform_of(state["machineId"], settings) == "redfish" and not await is_gone(
                state["machineId"], settings
            )
            await it.refresh()
            assert await it.changes({**LOAN, "script": "other"}) == [] and it.state["publicIpv4"] == "192.0.2.97"

            removal = Resource(made, "Removal")
            removed = {"machineId": state["machineId"], "platform": "redfish", "timeoutSeconds": 20}
            await removal.up(removed)
            assert bmc.machine.resets[-1] == "ForceOff" and bmc.machine.state() == "Off" and not boot.exists()
            assert await is_gone(state["machineId"], settings)
            await it.refresh()
            assert it.id and it.state["present"] is False and await it.changes(LOAN) == []
            # The server is a worker now, being installed: taking the loan away once more leaves it alone.
            boot.mkdir()
            (boot / FILE).write_text("#!ipxe\nthe worker's\n")
            bmc.machine.power, resets = "On", len(bmc.machine.resets)
            await removal.up({**removed, "triggers": ["again"]})
            await it.delete()
            assert len(bmc.machine.resets) == resets and (boot / FILE).exists()
            assert await is_gone(f"worker-0/{UUID}", settings) is False

    asyncio.run(run())


def test_a_loan_that_a_kill_broke_off_goes_on(bmc: FakeBmc, tmp_path: Path) -> None:
    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            made = await harness(bmc, artifacts)
            it = Resource(made, "EphemeralMachine")
            # Not started: the engine keeps it, and the next up starts it.
            bmc.faults = [once("POST", "ComputerSystem.Reset", 403)] * 2
            with pytest.raises(InitFailed, match="role Operator"):
                await it.up(LOAN)
            assert it.id and bmc.machine.boots == []
            await it.refresh()
            assert await it.changes(LOAN) == ["state"]
            await it.up(LOAN)
            assert bmc.machine.boots == ["Pxe"] and it.state["state"] == "active"
            # Killed before the state was written: it runs already, and that is ours.
            again = Resource(made, "EphemeralMachine")
            await again.up(LOAN)
            assert bmc.machine.boots == ["Pxe", "Pxe"] and again.state["machineId"] == it.state["machineId"]
            # Killed between off and withdrawn: the rest is done.
            bmc.machine.power, bmc.machine.pending = "Off", None
            await again.delete()
            assert not (tmp_path / "artifacts/boot").exists()

    asyncio.run(run())


def test_a_server_in_use_is_not_lent(bmc: FakeBmc, tmp_path: Path) -> None:
    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            it = Resource(await harness(bmc, artifacts), "EphemeralMachine")
            bmc.machine.power = "On"
            with pytest.raises(InvalidInputs, match="set `consent: wipe` of this server"):
                await it.up(LOAN)
            assert bmc.machine.resets == [] and not (tmp_path / "artifacts/boot").exists()
            await it.up({**LOAN, "accept": "wipe"})
            assert bmc.machine.boots == ["Pxe"]

    asyncio.run(run())


def test_a_loan_takes_no_inputs_of_metals(bmc: FakeBmc) -> None:
    async def run() -> None:
        it = Resource(await harness(bmc), "EphemeralMachine")
        problems = await it.check({**LOAN, "plan": "c3.small.x86", "bgp": True, "mac": "x", "script": UNKNOWN})
        assert [problem.split(" ")[0] for problem in problems] == ["plan", "bgp", "mac"]
        with pytest.raises(InvalidInputs, match="set `artifacts` of the metal-ipi provider"):
            await it.up(LOAN)
        assert bmc.machine.resets == []

    asyncio.run(run())
