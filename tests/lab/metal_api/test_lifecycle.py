"""What happens to a device over time, and over restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lab.metal_api.devices import set_state
from tests.lab.metal_api.harness import PROJECT, PUBLIC_KEY, SAVED, World, world


async def test_a_device_is_active_when_its_script_was_served(lab: World) -> None:
    device = await lab.order()
    await lab.until(lambda: bool(lab.machines.specs))
    assert (await lab.device(device["id"]))["state"] == "provisioning"
    spec = lab.machines.specs[device["id"]]
    assert [entry.address for entry in spec.addresses] == ["198.51.100.1", "203.0.113.1"]
    assert spec.mac == device["network_ports"][1]["data"]["mac"]
    shown = await lab.booted(device["id"])
    assert shown["state"] == "active"
    types = [event["type"] for event in shown["provisioning_events"]]
    assert types == [f"provisioning.{code}" for code in ("101", "102", "103", "104.01", "109", "110")]


async def test_a_script_in_userdata_wins_over_the_url(lab: World) -> None:
    with_url = await lab.order()
    with_both = await lab.order(userdata="#!ipxe\necho mine")
    async with lab.machine("127.0.0.1") as client:
        script = (await client.get(f"/ipxe/{with_url['id']}")).text
        assert script.startswith("#!ipxe\n")
        assert "chain --autofree http://boot.facility.test/boot.ipxe" in script
        assert (await client.get(f"/ipxe/{with_both['id']}")).text == "#!ipxe\necho mine"


async def test_deletion_takes_a_moment_and_frees_the_addresses(lab: World) -> None:
    lab.clock.runs.clear()
    device = await lab.order()
    path = f"/metal/v1/devices/{device['id']}"
    assert (await lab.client.request("DELETE", path, json={"force_delete": False})).status_code == 204
    assert (await lab.device(device["id"]))["state"] == "deprovisioning"
    second = await lab.order()
    assert second["ip_addresses"][0]["address"] == "198.51.100.3"
    lab.clock.runs.set()
    await lab.until(lambda: device["id"] not in lab.devices)
    assert ("delete", device["id"]) in lab.machines.calls
    assert ("power_on", device["id"]) not in lab.machines.calls
    await lab.get(path, status=404)
    assert (await lab.order())["ip_addresses"][0]["address"] == "198.51.100.1"


async def test_power_actions(lab: World) -> None:
    device = await lab.order()
    actions = f"/metal/v1/devices/{device['id']}/actions"
    early = await lab.client.post(actions, json={"type": "power_off"})
    assert early.status_code == 422
    await lab.booted(device["id"])
    lab.clock.runs.clear()
    await lab.post(actions, {"type": "power_off"}, status=202)
    record = lab.devices[device["id"]]
    assert record.state == "powering_off"
    lab.clock.runs.set()
    await lab.until(lambda: record.state == "inactive")
    lab.machines.calls.clear()
    await lab.post(actions, {"type": "power_on"}, status=202)
    assert (await lab.booted(device["id"]))["state"] == "active"
    await lab.post(actions, {"type": "rescue"}, status=501)
    await lab.post(actions, {"type": "dance"}, status=422)


@pytest.mark.parametrize("always_pxe", [False, True])
async def test_a_device_boots_its_disk_once_it_got_its_script(lab: World, always_pxe: bool) -> None:
    device = await lab.order(always_pxe=always_pxe)
    await lab.until(lambda: bool(lab.machines.specs))
    sizes = [(disk.size_mib, disk.rotational) for disk in lab.machines.specs[device["id"]].disks]
    assert sizes == [(4096, False), (8192, False)]
    assert lab.boots(device["id"]) == ("network",)
    shown = await lab.booted(device["id"])
    assert shown["always_pxe"] is always_pxe
    after = ("network",) if always_pxe else ("disk",)
    assert lab.boots(device["id"]) == after
    path = f"/metal/v1/devices/{device['id']}"
    await lab.post(f"{path}/actions", {"type": "reboot"}, status=202)
    assert lab.boots(device["id"]) == after
    await lab.client.put(path, json={"always_pxe": not always_pxe})
    assert lab.boots(device["id"]) == (("disk",) if always_pxe else ("network",))


@pytest.mark.parametrize(("always_pxe", "state"), [(False, "active"), (True, "powering_on")])
async def test_a_device_that_boots_its_disk_is_active_without_a_script(
    lab: World, always_pxe: bool, state: str
) -> None:
    device = await lab.order(always_pxe=always_pxe)
    await lab.booted(device["id"])
    record, actions = lab.devices[device["id"]], f"/metal/v1/devices/{device['id']}/actions"
    await lab.client.post(actions, json={"type": "power_off"})
    await lab.until(lambda: record.state == "inactive")
    lab.machines.calls.clear()
    await lab.client.post(actions, json={"type": "power_on"})
    await lab.until(lambda: bool(lab.machines.calls))
    await asyncio.sleep(0)
    assert record.state == state


async def test_reinstallation(lab: World) -> None:
    device = await lab.order()
    path = f"/metal/v1/devices/{device['id']}"
    gentle = {"type": "reinstall", "preserve_data": True, "deprovision_fast": True}
    await lab.post(f"{path}/actions", gentle, status=422)
    await lab.booted(device["id"])
    another = {**gentle, "ipxe_script_url": "http://boot.facility.test/other.ipxe"}
    await lab.post(f"{path}/actions", another, status=501)
    lab.machines.calls.clear()
    lab.clock.runs.clear()
    await lab.post(f"{path}/actions", gentle, status=202)
    record = lab.devices[device["id"]]
    assert (record.state, lab.boots(device["id"])) == ("reinstalling", ("network",))
    await lab.post(f"{path}/actions", gentle, status=422)
    lab.clock.runs.set()
    assert (await lab.booted(device["id"]))["state"] == "active"
    assert lab.boots(device["id"]) == ("disk",)
    assert lab.machines.calls == [("power_off", device["id"]), ("power_on", device["id"])]
    events = (await lab.get(f"{path}/events"))["events"]
    assert [event["type"] for event in events].count("instance.reinstalling") == 1


@pytest.mark.parametrize(
    ("asked", "wiped"),
    [
        ({}, 2),
        ({"preserve_data": True}, 1),
        ({"deprovision_fast": True}, 0),
        ({"preserve_data": True, "deprovision_fast": True}, 0),
    ],
)
async def test_what_a_reinstallation_wipes(tmp_path: Path, asked: dict[str, bool], wiped: int) -> None:
    """From a device that is off, and when the API is killed after its answer: what it has to wipe is not forgotten."""
    async with world(tmp_path) as lab:
        device = await lab.order()
        await lab.booted(device["id"])
        serials = tuple(disk.serial for disk in lab.machines.specs[device["id"]].disks)
        actions = f"/metal/v1/devices/{device['id']}/actions"
        await lab.client.post(actions, json={"type": "power_off"})
        await lab.until(lambda: lab.devices[device["id"]].state == "inactive")
        offered = (await lab.device(device["id"]))["actions"]
        assert {"type": "reinstall", "name": "Reinstall"} in offered
        await lab.post(actions, {"type": "reinstall", **asked}, status=202)
        as_killed = (tmp_path / SAVED).read_text()
        await lab.until(lambda: bool(lab.machines.blanked))
        assert lab.machines.blanked == [serials[:wiped]]
    (tmp_path / SAVED).write_text(as_killed)
    async with world(tmp_path) as lab:
        await lab.provisioner.resume()
        assert (await lab.booted(device["id"]))["state"] == "active"
        assert lab.machines.blanked == [serials[:wiped]]


async def test_machines_that_outlive_the_api_ask_its_successor_what_to_boot(tmp_path: Path) -> None:
    async with world(tmp_path) as lab:
        device = await lab.order()
        await lab.booted(device["id"])
    async with world(tmp_path) as lab:
        lab.machines.survivors = frozenset({device["id"], "somebody else's"})
        lab.provisioner.attend()
        assert lab.machines.orders.keys() == {device["id"]}
        assert lab.boots(device["id"]) == ("disk",)
        await lab.provisioner.resume()
        assert not lab.machines.calls


async def test_a_back_end_that_cannot_fails_the_device(lab: World) -> None:
    lab.machines.refuse = "no memory left"
    device = await lab.order()
    await lab.until(lambda: lab.devices[device["id"]].state == "failed")
    events = (await lab.get(f"/metal/v1/devices/{device['id']}/events"))["events"]
    assert events[0]["body"] == "lab-worker-0 failed: no memory left"


async def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    """The second world reads the file as the first left it right after its answers, not after a clean end."""
    async with world(tmp_path) as lab:
        await lab.client.post(f"{PROJECT}/ssh-keys", json={"label": "k", "key": PUBLIC_KEY})
        queued, running = await lab.order(hostname="queued"), await lab.order(hostname="running")
        await lab.booted(running["id"])
        await lab.client.post("/lab/faults", json={"kind": "never_boots", "match": {"hostname": "x"}})
        as_killed = (tmp_path / SAVED).read_text()
    (tmp_path / SAVED).write_text(as_killed)
    async with world(tmp_path) as lab:
        await lab.provisioner.resume()
        await lab.until(lambda: len(lab.machines.specs) == 2)
        assert (await lab.device(running["id"]))["state"] == "active"
        assert (await lab.booted(queued["id"]))["state"] == "active"
        assert len((await lab.get(f"{PROJECT}/ssh-keys"))["ssh_keys"]) == 1
        assert len((await lab.get("/lab/faults"))["faults"]) == 1


async def test_a_device_that_was_about_to_be_switched_on_is_after_a_restart(tmp_path: Path) -> None:
    async with world(tmp_path) as lab:
        lab.clock.runs.clear()
        device = lab.devices[(await lab.order())["id"]]
        set_state(lab.account, device, "provisioning")
    async with world(tmp_path) as lab:
        await lab.provisioner.resume()
        assert (await lab.booted(device.id))["state"] == "active"


async def test_the_inventory_is_empty_when_nothing_is_left(lab: World) -> None:
    kinds = ["devices", "ssh_keys", "projects", "reservations", "bgp_sessions", "faults", "virtual_networks"]
    kinds += ["gateways", "spot_market_requests"]
    empty: dict[str, list[str]] = {kind: [] for kind in kinds}
    assert (await lab.get("/lab/inventory")) == empty
    lab.clock.runs.clear()
    device = await lab.order(tags=["metal-ipi"])
    inventory = await lab.get("/lab/inventory")
    assert inventory["devices"][0] | {"addresses": None} == {
        "id": device["id"],
        "hostname": "lab-worker-0",
        "state": "queued",
        "project_id": PROJECT.rsplit("/", 1)[-1],
        "tags": ["metal-ipi"],
        "addresses": None,
    }
