"""Installing machines again through the Metal API on loopback."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from metal_ipi.provider.configuration import MetalSettings
from metal_ipi.provider.errors import InitFailed, RemoteError
from metal_ipi.provider.platforms.equinix_metal.driver import EquinixMetal
from tests.provider.fake_metal import FakeMetal
from tests.provider.harness import until
from tests.provider.installation_site import DIRECTORY, NEW, OLD, RECORDED, Site

pytestmark = pytest.mark.usefixtures("no_waiting")

ACTION = {"type": "reinstall", "preserve_data": True, "deprovision_fast": True}


def open_metal(metal: FakeMetal, timeout: float = 5) -> EquinixMetal:
    return EquinixMetal(MetalSettings(auth_token="token", endpoint=metal.url), timeout=timeout)


@pytest.mark.parametrize("fault", [None, "lose the answer", (503, {}, {}), (429, {}, {"Retry-After": "1"})])
async def test_never_twice(metal: FakeMetal, fault: Any) -> None:
    device = metal.add("worker-0", [])
    metal.faults["POST"] = [fault] if fault else []
    async with open_metal(metal) as driver:
        await driver.describe(device, user_data="{}", ipxe_script_url="http://boot.test/x")
        assert metal.devices[device]["userdata"] == "{}" and metal.devices[device]["always_pxe"] is False
        await driver.reinstall(device)
        assert metal.devices[device]["state"] == "reinstalling"
        await driver.reinstall(device)
    assert metal.bodies == [ACTION]


async def test_an_answer_that_was_lost_and_carried_out_at_once(metal: FakeMetal) -> None:
    device = metal.add("worker-0", [])
    metal.faults["POST"] = ["lose the answer"]
    async with open_metal(metal) as driver:
        task = asyncio.ensure_future(driver.reinstall(device))
        await until(lambda: bool(metal.bodies))
        metal.devices[device] |= {"state": "active", "walk": []}
        await task
    assert metal.bodies == [ACTION]


async def test_what_does_not_pass_is_told(metal: FakeMetal) -> None:
    device = metal.add("worker-0", [], state="failed")
    async with open_metal(metal, timeout=0.5) as driver:
        with pytest.raises(RemoteError, match=r"refuses POST /devices/\S+/actions: Device is failed"):
            await driver.reinstall(device)
        metal.devices[device]["state"] = "active"
        metal.faults["POST"] = [(503, {}, {})] * 9
        with pytest.raises(RemoteError, match=rf"did not reinstall device {device}: HTTP 503"):
            await driver.reinstall(device)
        with pytest.raises(RemoteError, match="does not exist any more"):
            await driver.reinstall("gone")


async def test_a_device_is_restarted_or_switched_on(metal: FakeMetal) -> None:
    device, off = metal.add("worker-0", []), metal.add("worker-1", [], state="inactive")
    async with open_metal(metal) as driver:
        await driver.restart(device)
        await driver.restart(off)
    assert metal.bodies == [{"type": "reboot"}, {"type": "power_on"}]


def on_metal(site: Site, metal: FakeMetal) -> dict[str, str]:
    """Inputs of a machine there, which the site's installations know how to reach."""
    site.opener = lambda platform, settings, status: open_metal(metal)
    site.another_run()
    device = metal.add("worker-0", [])
    return {"platform": "equinix-metal", "machineId": device, "userData": "{}", "ipxeScriptUrl": "http://b.test/x"}


async def test_what_to_look_at_is_of_the_platform(site: Site, metal: FakeMetal) -> None:
    more = on_metal(site, metal)
    machine, device = await site.machine("worker-0"), more["machineId"]
    with pytest.raises(InitFailed, match=r"could not be booted into .*reaches the artifact host\..*SOS") as caught:
        await site.up(machine, ordered=True, **more)
    assert f"device {device}" in str(caught.value) and "bootMethod" not in str(caught.value)


async def test_a_worker_on_metal(site: Site, metal: FakeMetal) -> None:
    """By kexec, with the user data that its new system reads; by a reinstallation where it is silent."""
    more = on_metal(site, metal)
    machine, device = await site.machine("worker-0", installed=OLD), more["machineId"]
    state = await site.up(machine, **more)
    assert state["via"] == "kexec" and metal.devices[device]["userdata"] == "{}" and metal.bodies == []
    site.states["worker-0"]["generation"] = machine.disk = OLD
    site.upload(machine)
    await machine.start("off")
    site.another_run()
    waiting = asyncio.ensure_future(site.up(machine, **more))
    await until(lambda: bool(metal.bodies))
    url, script = metal.devices[device]["ipxe_script_url"], site.artifacts / DIRECTORY / "worker-0.ipxe"
    assert url == f"{site.settings.need_artifacts().boot_base_url}/{DIRECTORY}/worker-0.ipxe"
    assert re.search(rf"^kernel .* metal-ipi.not-after=\d+ metal-ipi.device={RECORDED}$", script.read_text(), re.M)
    await machine.start("live")
    assert (
        (await waiting)["via"] == "reinstall" and not script.exists() and site.states["worker-0"]["generation"] == NEW
    )
    assert metal.bodies == [ACTION] and site.log[-1] == "check worker-0"


async def test_a_token_that_may_not_delete_does_not_make_a_machine_seem_gone(metal: FakeMetal) -> None:
    device = metal.add("worker-0", [])
    metal.faults["DELETE"] = [(403, {"errors": ["read-only"]}, {})]
    async with open_metal(metal) as driver:
        with pytest.raises(RemoteError, match=r"read-only \(HTTP 403\); the API token may not do this"):
            await driver.delete(device)
    assert metal.devices[device]["state"] != "deprovisioning"
