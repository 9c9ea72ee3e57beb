"""Servers through a real Ironic, which reaches the lab's BMCs: claimed, installed, killed at work, given back."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.bmc.rack import second_mac
from lab.machines.simulated import ipxe
from metal_ipi.components.provisioning import configuration
from metal_ipi.provider import boot_tree
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.installation.inputs import Job
from metal_ipi.provider.installation.remote import open_remote
from metal_ipi.provider.ironic_settings import DRIVERS
from metal_ipi.provider.live_iso import place
from metal_ipi.provider.live_iso.iso9660 import Disc
from metal_ipi.provider.platforms.ids import MachineId
from metal_ipi.provider.platforms.ironic import Ironic, published
from metal_ipi.provider.platforms.registry import is_gone
from metal_ipi.provider.preflight.findings import Report
from metal_ipi.provider.resource import Context
from metal_ipi.provider.status import Status, silent
from tests.lab.bmc.harness import World, ipmi, need_ipmitool, world
from tests.provider import ironic_process
from tests.provider.harness import Resource, configured, settings_of, until
from tests.provider.live_iso.discs import line
from tests.provider.live_iso.test_lending import SCRIPT, Web, cache, web
from tests.provider.preflight.asking import NOTHING_ORDERED, ask, of, the
from tests.serving import serving

__all__ = ["cache", "web"]  # fixtures
pytestmark = [pytest.mark.servers, pytest.mark.ironic]

DIGEST = "0123456789abcdef"
SERVERS = 5
ISO = {"url": "https://mirror.test/live.iso", "sha256": "0" * 64}


@dataclass
class Site:
    """An Ironic, a rack, and an artifact host that BMCs fetch from."""

    ironic: ironic_process.Ironic
    rack: World
    artifacts: Mapping[str, Any]
    folder: Path
    said: list[str] = field(default_factory=list[str])

    def server(self, number: int, **more: Any) -> dict[str, Any]:
        """A server that is enrolled."""
        bmc = self.rack.servers[number].bmc
        return {
            "driver": "redfish",
            "address": self.rack.url(number).removesuffix("/redfish/v1/"),
            "username": bmc.username,
            "password": bmc.password,
            "verifyCa": bmc.ca_path,
            **more,
        }

    def settings(self, servers: Mapping[str, Any], claimant: str = "stack-a", **more: Any) -> Settings:
        """A provider's settings."""
        return settings_of(**self.config(servers, claimant, **more))

    def config(self, servers: Mapping[str, Any], claimant: str = "stack-a", **more: Any) -> dict[str, Any]:
        """A provider's configuration."""
        section = {
            "endpoint": self.ironic.endpoint,
            "username": ironic_process.USER,
            "password": ironic_process.PASSWORD,
            "ca": self.ironic.ca,
            "claimant": claimant,
            "liveIso": ISO,
            "servers": dict(servers),
        }
        return {"ironic": {**section, **more}, "artifacts": self.artifacts}

    def uploaded(self) -> list[Path]:
        """The discs on the artifact host."""
        return sorted((self.folder / "artifacts").rglob("*.iso"))

    @asynccontextmanager
    async def driver(self, settings: Settings) -> AsyncGenerator[Ironic]:
        """A driver of them."""

        async def say(text: str) -> None:
            self.said.append(text)

        async with Ironic(settings, say, timeout=120) as driver:
            yield driver

    async def published(self, settings: Settings, number: int) -> str:
        """The URL of a server's disc, which is there now."""
        mac, file = self.mac(number), self.rack.layout.rack / "disc.iso"
        file.write_bytes(b"a disc" * 1000)

        async def say(text: str) -> None:
            return

        await place.put(settings, mac, DIGEST, file, say)
        return place.url(settings, mac, DIGEST)

    async def claimed(self, driver: Ironic, settings: Settings, number: int) -> str:
        """A server's machine id; it is claimed, and its disc is there."""
        name = f"server-{number}"
        node = await driver.claim(name)
        await self.published(settings, number)
        return f"{name}/{node.id}"

    def mac(self, number: int) -> str:
        """Of a server."""
        return self.rack.servers[number].mac

    def hardware(self, number: int) -> tuple[str, str, str]:
        """What a server's BMC says: power, where it boots from and how often, what is attached."""
        system = self.rack.system(number)
        boot, images = (
            system.boot,
            [
                media.image
                for manager in system.managers
                for media in manager.virtual_media.get_members()
                if media.image
            ],
        )
        where = f"{boot['target'].value} {boot['enabled'].value}" if boot["target"] is not None else "nothing"
        return system.power_state.value, where, " ".join(images)


@pytest.fixture(scope="module")
def ironic(tmp_path_factory: pytest.TempPathFactory) -> Generator[ironic_process.Ironic]:
    with ironic_process.running(tmp_path_factory.mktemp("ironic")) as it:
        yield it


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    with world(tmp_path_factory.mktemp("rack"), SERVERS) as it:
        yield it


@pytest.fixture(scope="module")
def ipmi_rack(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[World, int]]:
    """One server, and the port of its BMC's IPMI."""
    need_ipmitool()
    with world(tmp_path_factory.mktemp("ipmi")) as it, ipmi(it) as port:
        yield it, port


@pytest.fixture
def site(ironic: ironic_process.Ironic, rack: World, artifact_host: dict[str, Any], tmp_path: Path) -> Generator[Site]:
    with serving(tmp_path / "artifacts") as url:
        yield Site(ironic=ironic, rack=rack, artifacts={**artifact_host, "bootBaseUrl": url}, folder=tmp_path)


async def refused(site: Site, settings: Settings, server: str) -> str:
    """What a claim is refused with."""
    async with site.driver(settings) as driver:
        with pytest.raises(ProviderError) as caught:
            await driver.claim(server)
    assert ironic_process.PASSWORD not in str(caught.value)
    return str(caught.value)


async def test_a_server_is_enrolled_installed_twice_and_given_back(site: Site) -> None:
    settings = site.settings({"server-0": site.server(0, bootMode="uefi")}, release="remove")
    assert site.rack.do(do="servers")["server-0"]["mode"] == "Legacy"
    async with site.driver(settings) as driver:
        node = await driver.claim("server-0")
        assert (await driver.claim("server-0")).id == node.id, "whoever was killed after the claim has it"
        machine_id = str(MachineId(server="server-0", identity=node.id))
        image = await site.published(settings, 0)
        await driver.boot_installer(machine_id, site.mac(0))
        assert site.hardware(0) == ("On", "Cd Continuous", image)
        assert site.rack.do(do="servers")["server-0"]["mode"] == "UEFI"
        await driver.boot_disk(machine_id)
        assert site.hardware(0) == ("On", "Hdd Continuous", "")
        # Nothing that would have a conductor that takes it over boot the installer again.
        assert "deploy_interface" not in site.ironic.node(node.id)["instance_info"]  # type: ignore[operator]
        before = len(site.rack.machines.boots)
        site.ironic.client.patch(  # its account was changed at the BMC, and in the settings
            f"/v1/nodes/{node.id}",
            json=[{"op": "replace", "path": "/driver_info/redfish_password", "value": "what-it-was"}],
        ).raise_for_status()
        await driver.boot_installer(machine_id, site.mac(0))
        power, boot, attached = site.hardware(0)
        assert (power, boot) == ("On", "None Disabled"), "once, and that was"
        assert attached not in ("", image), "Ironic 39's conductor has fetched it"
        # A disc that is none of CoreOS's is one with iPXE to the lab's firmware.
        assert [devices[0] for devices in site.rack.machines.boots[before:]] == ["network"]
        await driver.boot_disk(machine_id)
        await driver.power_off(machine_id)
        assert await driver.power_state(machine_id) == "Off"
        await driver.give_back(machine_id)
        await driver.give_back(machine_id)
    assert site.ironic.client.get(f"/v1/nodes/{node.id}").status_code == 404
    assert site.hardware(0)[0] == "Off"


async def test_the_resource_and_its_installation(site: Site, web: Web) -> None:
    """Claimed, sent into its installer by a disc of its own, and given back."""
    iso = {"url": web.iso.url, "sha256": web.iso.sha256}
    config = site.config({"server-0": site.server(0)}, liveIso=iso, release="remove")
    it = await configured("IronicMachine", **config)
    claim = {"server": "server-0", "hostname": "lab-worker-0", "mac": site.mac(0), "publicIpv4": "192.0.2.97"}
    state = await it.up(claim)
    assert it.id == state["machineId"] and it.id.startswith("server-0/")
    assert (state["driver"], state["resourceClass"], state["nics"]) == ("redfish", "baremetal", [])
    assert (state["publicIpv4"], state["privateIpv4"]) == ("192.0.2.97", "192.0.2.97")
    for secret in (ironic_process.PASSWORD, site.rack.servers[0].bmc.password):
        assert secret not in repr(state) + repr(it.harness.log.messages)
    assert await it.changes(claim) == [] and (await it.diff({**claim, "server": "server-1"})).replaces == ["server"]
    settings = settings_of(**config)
    assert not await is_gone(it.id, settings)
    job = Job.of_state(
        {"platform": "ironic", "machineId": it.id, "hostname": "lab-worker-0", "mac": site.mac(0), "script": SCRIPT}
    )
    context = Context(urn=it.urn, settings=settings, status=Status(it.harness.log, it.urn))
    remote = open_remote(context, job)
    await remote.prepare()
    assert site.uploaded() == []
    await remote.enter()
    (told,) = site.uploaded()
    with told.open("rb") as file:
        assert "ignition.platform.id=metal" in line(Disc(file))
    assert not await remote.is_off()
    assert site.hardware(0)[1] == "Cd Continuous" and told.name in site.hardware(0)[2]
    await remote.boot_disk()
    await remote.withdraw()
    assert site.uploaded() == [] and site.hardware(0) == ("On", "Hdd Continuous", "")
    # Ironic's inspection tells what the server has; one that has not the interface is refused.
    await it.delete()
    await it.delete()
    assert await is_gone(state["machineId"], settings)
    assert site.hardware(0)[0] == "Off"


@pytest.mark.nightly
async def test_a_server_is_lent_and_installed_afterwards(site: Site, web: Web) -> None:
    iso = {"url": web.iso.url, "sha256": web.iso.sha256}
    config = site.config({"server-0": site.server(0)}, liveIso=iso, release="remove")
    loan = await configured("EphemeralMachine", **config)
    lent = {
        "platform": "ironic",
        "server": "server-0",
        "hostname": "lab-bootstrap",
        "mac": site.mac(0),
        "publicIpv4": "192.0.2.97",
        "script": SCRIPT,
        "timeoutSeconds": 60,
    }
    with pytest.raises(ProviderError, match="server server-0 is not claimed: declare its IronicMachine"):
        await loan.up(lent)
    worker = Resource(loan.harness, "IronicMachine", "worker-0")
    claim = {"server": "server-0", "hostname": "lab-worker-0", "mac": site.mac(0), "publicIpv4": "192.0.2.97"}
    await worker.up(claim)
    state = await loan.up(lent)
    assert loan.id.startswith(f"{worker.id}/bootstrap/{site.mac(0)}/")
    assert (state["present"], state["state"], state["publicIpv4"]) == (True, "active", "192.0.2.97")
    assert site.hardware(0)[:2] == ("On", "Cd Continuous") and len(site.uploaded()) == 1
    settings = settings_of(**config)
    assert not await is_gone(loan.id, settings)
    await loan.delete()
    await loan.delete()
    assert await is_gone(loan.id, settings) and not await is_gone(worker.id, settings), "claimed still"
    assert site.hardware(0) == ("Off", "Hdd Continuous", "") and site.uploaded() == []
    await worker.delete()


async def test_what_a_claim_left_that_was_killed_goes_with_down(site: Site) -> None:
    """`down` knows nothing of it but the inputs: with the node allocated, with it enrolled only, and with neither."""
    config = site.config({"server-0": site.server(0)}, claimant="stack-c", release="remove")
    it = await configured("IronicMachine", **config)
    inputs = {"server": "server-0", "hostname": "lab-worker-0", "mac": site.mac(0), "publicIpv4": "192.0.2.97"}
    settings = settings_of(**config)
    for left in ("a claim", "a node", "nothing"):
        async with site.driver(settings) as driver:
            if left == "a claim":
                await driver.claim("server-0", accept="wipe")
            elif left == "a node":
                await driver.nodes.enrolled("server-0", settings.need_ironic_server("server-0"), "wipe")
        it.id, it.state = "interrupted", dict(inputs)
        await it.delete()
        assert site.ironic.client.get("/v1/nodes/server-0").status_code == 404
        assert site.ironic.client.get("/v1/allocations/stack-c-server-0").status_code == 404


async def test_a_server_that_may_be_somebodys_is_refused(site: Site) -> None:
    settings = site.settings({"server-0": site.server(0)}, release="remove")
    site.rack.do(do="power", server="server-0", to="on")
    found = await refused(site, settings, "server-0")
    assert "is power on, and it may run something that is not of this cluster" in found
    node = site.ironic.node("server-0")
    assert (node["provision_state"], node["automated_clean"]) == ("manageable", False), "nothing was wiped"
    async with site.driver(settings) as driver:
        node = await driver.claim("server-0", accept="wipe")
        assert site.ironic.node("server-0")["automated_clean"] is None, "as Ironic is set, when it is given back"
        await driver.give_back(f"server-0/{node.id}")


async def test_an_inspected_server_is_known(site: Site) -> None:
    config = site.config({"server-0": site.server(0)}, release="keep")
    settings = settings_of(**config)
    async with site.driver(settings) as driver:
        node = await driver.claim("server-0", accept="wipe")
        await driver.give_back(f"server-0/{node.id}")
        for verb in ("manage", "inspect", "provide"):
            await driver.nodes.provision(node, verb)
    it = await configured("IronicMachine", **config)
    claim = {"server": "server-0", "hostname": "lab-worker-0", "mac": site.mac(0), "publicIpv4": "192.0.2.97"}
    claim["accept"] = "wipe"
    with pytest.raises(ProviderError, match=r"no network interface with the MAC address 52:54:00:00:00:99, but"):
        await it.up({**claim, "mac": "52:54:00:00:00:99"})
    state = await it.up(claim)
    assert set(state["nics"]) == {site.mac(0), second_mac(site.mac(0))} and state["memoryMib"] > 0
    assert [disk["name"] for disk in state["disks"]] == ["Drive 0", "Drive 1"]
    await it.delete()


async def test_what_a_claim_would_be_refused_with_is_told_before(site: Site) -> None:
    async with site.driver(site.settings({"server-0": site.server(0)})) as driver:  # known from before, and inspected
        node = await driver.claim("server-0", accept="wipe")
        await driver.give_back(f"server-0/{node.id}")
        for verb in ("manage", "inspect", "provide"):
            await driver.nodes.provision(node, verb)
    servers = {
        "worker-0": site.server(0),
        "server-0": site.server(0),
        "worker-1": {"node": "nobody"},
        "worker-2": {"resourceClass": "gpus", "traits": ["CUSTOM_A"]},
        "worker-3": {"resourceClass": "gpus", "traits": ["CUSTOM_A"]},
        "worker-4": site.server(1, conductorGroup="hall-z"),
    }

    async def asked(*names: str, again: bool = False, **more: Any) -> Report:
        planned = [{"name": name, "role": "worker", "ironic": name} for name in names]
        values = {**NOTHING_ORDERED, "version": "4.19.0", "servers": planned}
        return await ask(site.config(servers, **more), values, again=again)

    def told() -> Any:
        return site.ironic.client.get("/v1/nodes").json(), site.ironic.client.get("/v1/allocations").json()

    before = told()
    good = await asked("worker-0", "server-0")
    assert the(good, "ironic", "ok").startswith("there: server-0 (node server-0 of Ironic at ")
    assert "; to come: worker-0" in the(good, "ironic", "ok")
    assert the(good, "hardware", "ok").startswith("enough memory: server-0, node server-0 of Ironic")
    bad = await asked("worker-1", "worker-2", "worker-3", "worker-4")
    words = [finding.what for finding in of(bad, "ironic")]
    assert [finding.level for finding in of(bad, "ironic")] == ["error"] * 3
    assert "has no node nobody any more" in words[0] and words[1].startswith("worker-4: ")
    assert "has no conductor of the group hall-z with the driver redfish" in words[1]
    assert words[2] == (
        "0 nodes of the resource class gpus with the traits CUSTOM_A are free, and 2 are wanted: worker-2, worker-3"
    )
    site.ironic.client.put("/v1/nodes/server-0/maintenance", json={"reason": "a new fan"}).raise_for_status()
    assert "is in maintenance (set by hand): a new fan" in the(await asked("server-0", again=True), "ironic", "warning")
    site.ironic.client.delete("/v1/nodes/server-0/maintenance").raise_for_status()
    away = await asked("worker-0", "server-0", password="another")
    assert "HTTP 401" in the(away, "ironic", "error"), "once for all"
    assert told() == before, "nothing was changed"


async def test_nobody_elses_node_is_touched(site: Site) -> None:
    theirs = site.settings({"server-1": site.server(1, resourceClass="the-only-one")}, claimant="stack-b")
    async with site.driver(theirs) as driver:
        node = await driver.claim("server-1")
    before = site.ironic.lasting(node.id)
    ours = site.settings({"server-1": site.server(1), "taken": {"node": "server-1"}})
    assert "was not enrolled by this stack: use it as it is, with `node: server-1`" in await refused(
        site, ours, "server-1"
    )
    found = await refused(site, ours, "taken")
    assert f"is taken, by the instance {node.allocation_id}" in found and "give taken another node" in found
    async with site.driver(ours) as driver:
        await driver.give_back(f"taken/{node.id}")
    assert site.ironic.lasting(node.id) == before
    async with site.driver(theirs) as driver:
        await driver.give_back(f"server-1/{node.id}")
    assert site.ironic.node(node.id)["instance_uuid"] is None, "kept, and free"
    # Now that it is free, it can be had by its class.
    either = site.settings({"any": {"resourceClass": "the-only-one"}})
    async with site.driver(either) as driver:
        got = await driver.claim("any")
        assert got.id == node.id
        assert "no free node of the resource class the-only-one for" in await refused(
            site, site.settings({"another": {"resourceClass": "the-only-one"}}), "another"
        )
        await driver.give_back(f"any/{got.id}")
    # One that somebody deployed without an allocation is theirs, too.
    image = await site.published(either, 1)
    change = [{"op": "add", "path": "/instance_info", "value": {"deploy_interface": "ramdisk", "boot_iso": image}}]
    site.ironic.client.patch(f"/v1/nodes/{node.id}", json=change).raise_for_status()
    site.ironic.client.put(f"/v1/nodes/{node.id}/states/provision", json={"target": "active"}).raise_for_status()
    async with site.driver(theirs) as driver:
        assert (await driver.nodes.settled(node.id)).provision_state == "active"
        await driver.give_back(f"server-1/{node.id}")
    assert site.ironic.node(node.id)["provision_state"] == "active" and site.hardware(1)[0] == "On"


async def test_states_that_nodes_are_stuck_in_are_told_with_the_remedy(site: Site) -> None:
    wrong = site.settings({"server-2": site.server(2, password="wrong")})
    found = await refused(site, wrong, "server-2")
    assert "node server-2 of Ironic" in found and "is in the state enroll" in found
    assert "correct address, account and `verifyCa` of the server" in found
    # Once that is corrected, the same goes on.
    right = site.settings({"server-2": site.server(2)})
    async with site.driver(right) as driver:
        node = await driver.claim("server-2")
        await driver.give_back(f"server-2/{node.id}")
    site.ironic.client.put(f"/v1/nodes/{node.id}/maintenance", json={"reason": "a new fan"}).raise_for_status()
    assert "is in maintenance (set by hand): a new fan; end it" in await refused(site, right, "server-2")


@pytest.mark.nightly
async def test_cleaning_that_failed_is_told_and_tried_again(site: Site) -> None:
    settings = site.settings({"server-0": site.server(0)})
    path = "/v1/nodes/server-0"

    def cleaned(wanted: bool | None) -> None:
        change = [{"op": "replace", "path": "/automated_clean", "value": wanted}]
        site.ironic.client.patch(path, json=change).raise_for_status()

    async with site.driver(settings) as driver:
        node = await driver.claim("server-0", accept="wipe")
        machine_id = f"server-0/{node.id}"
        await site.published(settings, 0)
        await driver.boot_installer(machine_id, site.mac(0))
        await driver.boot_disk(machine_id)
        cleaned(True)  # with what, nobody has told this Ironic
        with pytest.raises(ProviderError, match=r"is in the state clean failed: .*then run the same command again"):
            await driver.give_back(machine_id)
        with pytest.raises(ProviderError, match="is in the state clean failed"):
            await driver.claim("server-0")
        cleaned(False)
        again = await driver.claim("server-0")
        assert again.id == node.id
        await driver.give_back(machine_id)


@pytest.mark.nightly
async def test_an_allocation_that_a_locked_database_failed_is_asked_for_again(site: Site) -> None:
    settings = site.settings({"server-4": site.server(4)}, release="remove")
    async with site.driver(settings) as driver:
        with site.ironic.failing_allocations(4):
            found = await refused(site, settings, "server-4")
        assert "is not given to server-4: Unexpected exception during allocation" in found
        with site.ironic.failing_allocations(2):
            node = await driver.claim("server-4")
        await driver.give_back(f"server-4/{node.id}")


def bios_step(**settings: str) -> dict[str, Any]:
    """A clean step that has the firmware take settings."""
    told = [{"name": name, "value": value} for name, value in settings.items()]
    return {"interface": "bios", "step": "apply_configuration", "args": json.dumps({"settings": told})}


@pytest.mark.nightly
async def test_clean_steps_are_done_before_a_server_is_available_and_once(site: Site) -> None:
    def settings(*steps: dict[str, Any]) -> Settings:
        return site.settings({"server-4": site.server(4, cleanSteps=list(steps))})

    def attributes() -> dict[str, str]:
        return dict(site.rack.system(4).bios.attributes)

    async def claimed_and_given_back(*steps: dict[str, Any]) -> int:
        """How often the server was started by it."""
        before = len(site.rack.machines.boots)
        async with site.driver(settings(*steps)) as driver:
            node = await driver.claim("server-4")
            assert node.provision_state == "available"
            await driver.give_back(f"server-4/{node.id}")
        return len(site.rack.machines.boots) - before

    off, on = bios_step(ProcHyperthreading="Disabled"), bios_step(ProcVirtualization="Enabled")
    assert attributes()["ProcHyperthreading"] == "Enabled"
    assert await claimed_and_given_back(off) == 1
    assert attributes()["ProcHyperthreading"] == "Disabled"
    assert await claimed_and_given_back(off) == 0, "done already"
    assert await claimed_and_given_back(off, on) == 1, "the first changes nothing any more"
    assert (attributes()["ProcHyperthreading"], attributes()["ProcVirtualization"]) == ("Disabled", "Enabled")

    unknown = bios_step(ProcHyperthreading="Enabled", Turbo="Enabled")
    found = await refused(site, settings(unknown), "server-4")
    assert "is in the state clean failed" in found and "Turbo" in found and "correct its `cleanSteps`" in found
    wiping = {"interface": "raid", "step": "delete_configuration"}
    assert "the clean steps raid.delete_configuration destroy the data on its disks" in await refused(
        site, settings(wiping), "server-4"
    )
    assert await claimed_and_given_back() == 0, "without any steps"
    assert site.ironic.node("server-4")["extra"]["metal_ipi_clean_steps"] is None  # type: ignore[index]
    assert site.hardware(4)[0] == "Off"
    assert await claimed_and_given_back(off, on) == 0, "as it was before what failed"
    removing = site.settings({"server-4": site.server(4)}, release="remove")
    async with site.driver(removing) as driver:
        node = await driver.claim("server-4")
        await driver.give_back(f"server-4/{node.id}")


async def test_a_service_that_is_away_and_one_that_is_not_trusted(site: Site) -> None:
    settings = site.settings({"server-3": {"node": "nobody"}})
    assert "has no node nobody any more" in await refused(site, settings, "server-3")
    assert settings.ironic is not None
    another = settings.ironic.model_copy(update={"password": "another-password"})
    strange = replace(settings, ironic=another)
    found = await refused(site, strange, "server-3")
    assert "HTTP 401" in found and "correct `username` and `password` in `ironic`" in found
    assert "another-password" not in found
    untrusted = replace(settings, ironic=settings.ironic.model_copy(update={"ca": None}))
    assert "its TLS certificate is not trusted" in await refused(site, untrusted, "server-3")


@pytest.mark.nightly
async def test_a_conductor_that_dies_while_it_deploys(site: Site) -> None:
    settings = site.settings({"server-3": site.server(3)})
    async with site.driver(settings) as driver:
        machine_id = await site.claimed(driver, settings, 3)
        work = asyncio.ensure_future(driver.boot_installer(machine_id, site.mac(3)))
        await until(lambda: any("(deploying)" in text for text in site.said))
        await asyncio.to_thread(site.ironic.kill)
        await asyncio.to_thread(site.ironic.start)
        await work
        assert any("is in the state deploy failed: " in text and "it is repeated" in text for text in site.said)
        assert site.hardware(3)[:2] == ("On", "Cd Continuous")
        await driver.boot_disk(machine_id)
        # A conductor that takes the server over leaves it on its disk.
        await asyncio.to_thread(site.ironic.kill)
        await asyncio.to_thread(site.ironic.start)
        await driver.restart(machine_id)
        assert site.hardware(3) == ("On", "Hdd Continuous", "")
        await driver.give_back(machine_id)
    assert site.hardware(3)[0] == "Off"


@pytest.mark.nightly
async def test_a_deployment_that_fails_for_good_is_told_and_the_next_up_does_it(site: Site) -> None:
    settings = site.settings({"server-3": site.server(3)})
    async with site.driver(settings) as driver:
        machine_id = await site.claimed(driver, settings, 3)
        (disc,) = site.uploaded()
        kept = disc.rename(disc.with_suffix(".kept"))
        disc.symlink_to("nowhere")  # it is listed, and nobody can fetch it
        before = len(site.said)
        with pytest.raises(ProviderError, match=r"(?s)is in the state deploy failed: .*404") as caught:
            await driver.boot_installer(machine_id, site.mac(3))
        assert "then run the same command again" in str(caught.value)
        assert sum("it is repeated" in text for text in site.said[before:]) == 2
        kept.rename(disc)
        await driver.boot_installer(machine_id, site.mac(3))
        assert site.hardware(3)[:2] == ("On", "Cd Continuous")
        await driver.boot_disk(machine_id)
        await driver.give_back(machine_id)
    assert site.hardware(3)[0] == "Off"


BY_IPMI = "52:54:00:72:63:00"
"""The MAC address of the server that is reached by IPMI. That of its rack's is another one's here."""
CHAIN = "#!ipxe\nchain --replace mac-${net0/mac:hexhyp}.ipxe || exit\n"


def by_ipmi(ipmi_rack: tuple[World, int], **more: Any) -> dict[str, Any]:
    """A server that is enrolled with IPMI."""
    (server,), port = ipmi_rack[0].servers, ipmi_rack[1]
    address = {"driver": "ipmi", "address": f"ipmi://127.0.0.1:{port}", "mac": BY_IPMI}
    return {**address, "username": server.bmc.username, "password": server.bmc.password, **more}


async def booted(site: Site, mac: str) -> ipxe.Boot | None:
    """What iPXE boots, begun with Ironic's boot.ipxe; None: the next device."""
    async with httpx.AsyncClient(trust_env=False) as http:

        async def fetch(url: str) -> str:
            answer = await http.get(url)
            if answer.status_code != 200:
                raise OSError(f"HTTP {answer.status_code}")
            return answer.text

        async def head(url: str) -> bytes:
            return (await fetch(url)).encode() if url.startswith(site.ironic.files) else b"MZ"

        variables = {"net0/mac": mac, "mac": mac}
        return await ipxe.run(f"{site.ironic.files}/boot.ipxe", variables, fetch, lambda line: None, head)


@pytest.mark.nightly
async def test_a_server_by_ipmi_boots_from_the_network_twice_and_is_given_back(
    site: Site, ipmi_rack: tuple[World, int]
) -> None:
    """Enrolled with the real ipmitool, deployed, rebuilt by a conductor that lost its boot files, and taken out."""
    rack, _ = ipmi_rack
    mac, password = BY_IPMI, rack.servers[0].bmc.password
    config = site.config({"worker-0": by_ipmi(ipmi_rack)}, liveIso=None, release="remove")
    it = await configured("IronicMachine", **config)
    state = await it.up({"server": "worker-0", "hostname": "lab-worker-0", "mac": mac, "publicIpv4": "192.0.2.97"})
    assert state["driver"] == "ipmi" and password not in repr(state) + repr(it.harness.log.messages)
    (port,) = site.ironic.client.get("/v1/ports", params={"node": "worker-0"}).json()["ports"]
    assert port["address"] == mac
    settings = settings_of(**config)
    job = Job.of_state(
        {"platform": "ironic", "machineId": it.id, "hostname": "lab-worker-0", "mac": mac, "script": SCRIPT}
        | {"chain": CHAIN}
    )
    remote = open_remote(Context(urn=it.urn, settings=settings, status=Status(it.harness.log, it.urn)), job)

    def power() -> str:
        return str(rack.do(do="servers")["server-0"]["power"])

    for again in (False, True):
        before = len(rack.machines.boots)
        await remote.prepare()
        await remote.enter()
        assert [devices[0] for devices in rack.machines.boots[before:]] == ["network"] and not await remote.is_off()
        found = await booted(site, mac)
        assert found is not None and found.kernel == "http://boot.test/kernel" and "BOOTIF" not in str(found)
        assert found.initrds == (("main", "http://boot.test/initramfs"),), "and nothing of Ironic's"
        await remote.boot_disk()
        await remote.withdraw()
        assert await booted(site, mac) is None, "an installed server goes on to its disk"
        await remote.restart()
        await remote.restart()
        assert [devices[0] for devices in rack.machines.boots[before:]] == ["network", "disk", "disk"]
        if not again:
            shutil.rmtree(site.ironic.boot_files / site.ironic.node("worker-0")["uuid"])  # type: ignore[operator]
            assert "deploy_interface" not in site.ironic.node("worker-0")["instance_info"]  # type: ignore[operator]
    async with site.driver(settings) as driver:
        await driver.power_off(it.id)
        assert (power(), await driver.power_state(it.id)) == ("off", "Off")
    assert not list(site.folder.rglob("*.ipxe")), "the boot tree goes with the last server"
    await it.delete()
    assert site.ironic.client.get("/v1/nodes/worker-0").status_code == 404 and power() == "off"
    assert site.uploaded() == []
    assert password not in site.ironic.log


async def test_what_a_server_by_ipmi_is_refused_with(site: Site, ipmi_rack: tuple[World, int]) -> None:
    """With a password that is none, at a BMC that is away, and with a MAC address that another node has."""
    (server,), servers = ipmi_rack[0].servers, {"worker-0": by_ipmi(ipmi_rack)}
    wrong = site.settings({"worker-0": by_ipmi(ipmi_rack, password="not-its-password")}, release="remove")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = {**servers["worker-0"], "address": f"ipmi://127.0.0.1:{nobody.getsockname()[1]}"}
        for settings in (wrong, site.settings({"worker-0": away}, release="remove")):
            found = await refused(site, settings, "worker-0")
            assert "node worker-0 of Ironic" in found and "is in the state enroll: " in found
            assert "correct address, account and password of the server; IPMI over LAN must be on" in found
            assert server.bmc.password not in found and "not-its-password" not in found
    right = site.settings(servers, release="remove")
    async with site.driver(right) as driver:
        node = await driver.claim("worker-0")  # once that is corrected, the same goes on
        # Another server that is said to have the same interface.
        other = site.settings({"worker-1": by_ipmi(ipmi_rack)}, release="remove")
        found = await refused(site, other, "worker-1")
        assert f"the MAC address {BY_IPMI} is that of node worker-0 of Ironic" in found and "correct `mac`" in found
        async with site.driver(other) as another:
            await another.abandon("worker-1")
        redfish = {**site.server(0), "mac": None}
        assert "was enrolled with the driver ipmi, but the settings have redfish" in await refused(
            site, site.settings({"worker-0": redfish}), "worker-0"
        )
    async with site.driver(site.settings(servers, release="keep")) as driver:
        await driver.give_back(f"worker-0/{node.id}")
    found = await refused(site, site.settings({"any": {"node": "worker-0"}}), "any")
    assert "boots from the network (boot interface ipxe), but should boot a disc: set `boot: network`" in found
    # What the settings call another MAC address now, Ironic does, too; an interface that it has found stays.
    interface = {"node_uuid": node.id, "address": "52:54:00:72:63:02"}
    site.ironic.client.post("/v1/ports", json=interface).raise_for_status()
    changed = site.settings({"worker-0": by_ipmi(ipmi_rack, mac="52:54:00:72:63:01")}, release="remove")
    async with site.driver(changed) as driver:
        node = await driver.claim("worker-0")
        ports = site.ironic.client.get("/v1/ports", params={"node": node.id}).json()["ports"]
        assert {port["address"] for port in ports} == {"52:54:00:72:63:01", "52:54:00:72:63:02"}
        await driver.give_back(f"worker-0/{node.id}")


@pytest.mark.nightly
async def test_a_node_that_somebody_has_enrolled_boots_from_the_network(site: Site) -> None:
    """By its name: with a port that whoever enrolled it has made; nothing of the node but the instance is changed."""
    async with site.driver(site.settings({"server-4": site.server(4)}, claimant="stack-b")) as driver:
        node = await driver.claim("server-4", accept="wipe")
        await driver.give_back(f"server-4/{node.id}")
    path, mac = f"/v1/nodes/{node.id}", site.mac(4)

    def taken(mac: str = mac) -> Settings:
        server = {"worker-0": {"node": "server-4", "boot": "network", "mac": mac}}
        return site.settings(server, liveIso=None)

    assert "has the boot interface redfish-virtual-media, but should boot from the network: give it one of" in (
        await refused(site, taken(), "worker-0")
    )
    change = [{"op": "replace", "path": "/boot_interface", "value": "ipxe"}]
    site.ironic.client.patch(path, json=change).raise_for_status()
    found = await refused(site, taken(), "worker-0")
    assert f"has no port that boots from the network with the MAC address {mac}, but none: correct `mac`" in found
    site.ironic.client.post("/v1/ports", json={"node_uuid": node.id, "address": mac}).raise_for_status()
    assert f"but {mac}: correct `mac`" in await refused(site, taken("52:54:00:00:00:99"), "worker-0")
    settings, before = taken(), site.ironic.lasting(node.id)
    async with site.driver(settings) as driver:
        seen = await driver.seen("worker-0")
        assert seen.where.startswith("node server-4 of Ironic") and seen.power == "Off"
        machine_id = f"worker-0/{(await driver.claim('worker-0')).id}"
        await published.publish(settings, "worker-0", mac, script=SCRIPT, chain=CHAIN, say=silent)
        for installed in (False, True):
            boots = len(site.rack.machines.boots)
            await driver.boot_installer(machine_id, mac)
            assert [devices[0] for devices in site.rack.machines.boots[boots:]] == ["network"]
            found = await booted(site, mac)
            assert found is not None and found.kernel == "http://boot.test/kernel", f"installed: {installed}"
            await driver.boot_disk(machine_id)
            await driver.restart(machine_id)
            assert site.rack.machines.boots[-1][0] == "disk"
        await boot_tree.withdraw(settings, mac)
        await driver.give_back(machine_id)
    changing = (
        "instance_info",
        "driver_internal_info",
        "provision_updated_at",
        "power_state",
        "target_provision_state",
    )
    after = site.ironic.lasting(node.id)
    assert {key for key in before if before[key] != after[key]} <= set(changing)
    async with site.driver(site.settings({"server-4": site.server(4)}, claimant="stack-b", release="remove")) as driver:
        await driver.give_back(f"server-4/{node.id}")
    assert site.ironic.client.get(path).status_code == 404


@pytest.mark.nightly
async def test_every_driver_of_the_service_is_one_of_ironics(site: Site, ipmi_rack: tuple[World, int]) -> None:
    """Its interfaces, too, or no conductor would start. A server with idrac boots its disc by Dell's own call."""
    found = site.ironic.client.get("/v1/drivers").json()["drivers"]
    assert {each["name"] for each in found} == set(configuration.drivers()) == set(DRIVERS)
    settings = site.settings({"server-4": site.server(4, driver="idrac")}, release="remove")
    async with site.driver(settings) as driver:
        machine_id = await site.claimed(driver, settings, 4)
        told = site.ironic.node("server-4")
        assert (told["boot_interface"], told["power_interface"]) == ("idrac-redfish-virtual-media", "idrac-redfish")
        with pytest.raises(ProviderError, match=r"is in the state deploy failed: Deploy step deploy.deploy failed"):
            await driver.boot_installer(machine_id, site.mac(4))  # this BMC is none of Dell's
        site.rack.do(do="hardware", server="server-4", dell=True)
        boots = len(site.rack.machines.boots)
        await driver.boot_installer(machine_id, site.mac(4))
        assert site.hardware(4)[:2] == ("On", "Cd Continuous")
        # A disc that is none of CoreOS's is one with iPXE to the lab's firmware.
        assert [devices[0] for devices in site.rack.machines.boots[boots:]] == ["network"]
        await driver.boot_disk(machine_id)
        await driver.restart(machine_id)
        assert site.rack.machines.boots[-1][0] == "disk"
        await driver.give_back(machine_id)
    site.rack.do(do="hardware", server="server-4", dell=False)
