"""Devices, projects and keys: measured against what the official plug-in answered to the same requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from typing import Any

import pytest
from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue

from lab.plugins.base import InitFailed, NotInTheLab, PluginError
from lab.plugins.equinix_metal import device, watch
from lab.plugins.equinix_metal.main import EquinixMetalPlugin
from lab.plugins.values import UNKNOWN, plain, plain_map, wrap_map
from tests.lab.plugins.fake_metal import ORGANIZATION, PROJECT, FakeMetal, serve
from tests.lab.plugins.fake_platform import FakePlatform
from tests.lab.plugins.harness import Driver, Heard, eventually, opened, run

DEVICE = "equinix-metal:index/device:Device"

INPUTS: dict[str, Any] = {
    "hostname": "lab-worker-0",
    "plan": "c3.small.x86",
    "operatingSystem": "custom_ipxe",
    "projectId": PROJECT,
    "metro": "LB",
    "userData": "{}",
    "ipxeScriptUrl": "http://boot/a",
    "tags": ["a", "b"],
}

DEFAULTS: dict[str, Any] = {
    "__defaults": ["alwaysPxe", "forceDetachVolumes", "waitForReservationDeprovision"],
    "alwaysPxe": False,
    "forceDetachVolumes": False,
    "waitForReservationDeprovision": False,
}

STATE: dict[str, Any] = {
    **INPUTS,
    **{name: value for name, value in DEFAULTS.items() if name != "__defaults"},
    "__meta": '{"e2bfb730-ecaa-11e6-8f88-34363bc7c4c0":'
    '{"create":600000000000,"delete":1200000000000,"update":1200000000000}}',
    "metro": "lb",
    "accessPrivateIpv4": "203.0.113.1",
    "accessPublicIpv4": "198.51.100.1",
    "accessPublicIpv6": "2001:db8::1",
    "billingCycle": "hourly",
    "created": "2030-01-02T03:04:05Z",
    "updated": "2030-01-02T03:04:05Z",
    "deployedFacility": "lab1",
    "facilities": ["lab1"],
    "locked": False,
    "networkType": "layer3",
    "networks": [
        {"address": "198.51.100.1", "cidr": 31, "family": 4, "gateway": "198.51.100.0", "public": True},
        {"address": "2001:db8::1", "cidr": 31, "family": 6, "gateway": "198.51.100.0", "public": True},
        {"address": "203.0.113.1", "cidr": 31, "family": 4, "gateway": "198.51.100.0", "public": False},
    ],
    "ports": [
        {"bonded": True, "id": "b", "mac": "", "name": "bond0", "type": "NetworkBondPort"},
        {"bonded": True, "id": "e", "mac": "52:54:00:00:00:01", "name": "eth0", "type": "NetworkPort"},
    ],
    "rootPassword": "hunter2-root",
    "sshKeyIds": ["aaaa"],
    "state": "active",
    "terminationTime": "",
}
"""What the official plug-in keeps of the device that `fake_metal` shows, without its id."""


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FEW_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(watch, "MANY_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(device, "AGAIN_SECONDS", 0.01)


@pytest.fixture
def metal(monkeypatch: pytest.MonkeyPatch) -> Generator[FakePlatform, None, None]:
    fake = FakePlatform()
    monkeypatch.delenv("METAL_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("PACKET_AUTH_TOKEN", raising=False)
    with serve(fake) as url:
        monkeypatch.setenv("METAL_API_URL", url)
        yield fake


async def driver(token: str = DEVICE, log: Heard | None = None, **configuration: Any) -> Driver:
    plugin = EquinixMetalPlugin(log or Heard())
    opened.append(plugin)
    arguments = wrap_map({"authToken": "token", **configuration})
    response = await plugin.configure(api.ConfigureRequest({}, arguments, True, True))
    assert response.supports_preview
    assert not response.accept_secrets
    return Driver(plugin, token)


def test_a_device_is_ordered_waited_for_and_kept_as_officially(metal: FakeMetal) -> None:
    log = Heard()

    async def scenario() -> dict[str, PropertyValue]:
        metal_device = await driver(log=log)
        inputs = await metal_device.inputs(INPUTS)
        assert inputs == {**INPUTS, **DEFAULTS}
        identifier, state = await metal_device.create(inputs, timeout=600)
        assert plain(state["id"]) == identifier
        assert await metal_device.diff(plain_map(state), inputs) == {}
        return state

    state = run(scenario())
    kept = plain_map(state)
    assert kept.pop("id") in metal.devices
    assert kept == STATE
    assert {name for name, value in state.items() if value.is_secret} == {"rootPassword", "userData"}
    ordered = metal.requests[0]
    assert ordered[:2] == ("POST", f"/metal/v1/projects/{PROJECT}/devices")
    assert ordered[2] == {
        "hostname": "lab-worker-0",
        "plan": "c3.small.x86",
        "operating_system": "custom_ipxe",
        "project_id": PROJECT,
        "metro": "lb",
        "userdata": "{}",
        "ipxe_script_url": "http://boot/a",
        "tags": ["a", "b"],
    }
    assert metal.tokens == {"token"}
    assert log.lines == ["lab-worker-0: provisioning 0 %, for 0 s"]


def test_a_preview_asks_nobody_and_needs_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METAL_API_URL", "http://127.0.0.1:1")

    async def scenario() -> dict[str, Any]:
        metal_device = await driver(authToken="")
        inputs = await metal_device.inputs({**INPUTS, "projectId": UNKNOWN})
        identifier, state = await metal_device.create(inputs, preview=True)
        assert not identifier
        with pytest.raises(PluginError, match="authToken is required"):
            await metal_device.create(inputs)
        return plain_map(state)

    state = run(scenario())
    assert state["hostname"] == "lab-worker-0"
    assert {name for name, value in state.items() if value == UNKNOWN} == (
        set(device.Device.computed) | {"projectId"}
    ) - {"hostname"}


def test_a_device_that_fails_is_kept_named_and_told_about(metal: FakeMetal) -> None:
    metal.final_state = "failed"
    metal.events = ["Provision failed: no power", "Provisioning started"]

    async def scenario() -> InitFailed:
        metal_device = await driver()
        with pytest.raises(InitFailed) as failure:
            await metal_device.create(INPUTS)
        state = plain_map(failure.value.properties)
        assert await metal_device.diff(state, INPUTS) == {"state": "UPDATE_REPLACE"}
        return failure.value

    failure = run(scenario())
    [identifier] = metal.devices
    assert failure.resource_id == identifier
    assert str(failure) == (
        f"device lab-worker-0 ({identifier}) is failed, not active; "
        "latest events: Provision failed: no power; Provisioning started"
    )
    assert plain(failure.properties["id"]) == identifier
    assert failure.properties["userData"].is_secret


def test_a_device_that_takes_too_long_is_kept_and_waited_for_again(metal: FakeMetal) -> None:
    metal.polls_until_active = 10**6

    async def scenario() -> None:
        metal_device = await driver()
        with pytest.raises(InitFailed, match=r"lab-worker-0 \(.*\) is still provisioning after 0 s") as failure:
            await metal_device.create(INPUTS, timeout=0.1)
        metal.polls_until_active = 0
        identifier, state = failure.value.resource_id, plain_map(failure.value.properties)
        assert await metal_device.diff(state, INPUTS) == {}
        assert (await metal_device.update(identifier, state, INPUTS))["state"] == "active"

    run(scenario())
    assert metal.count("POST", "/devices") == 1
    assert metal.count("PUT", "") == 0


def test_cancelling_keeps_the_device(metal: FakeMetal) -> None:
    metal.polls_until_active = 10**6

    async def scenario() -> None:
        metal_device = await driver()
        task = asyncio.ensure_future(metal_device.create(INPUTS))
        await eventually(lambda: metal.count("GET", "") > 2)
        task.cancel()
        with pytest.raises(InitFailed, match="cancelled while waiting for device lab-worker-0") as failure:
            await task
        assert failure.value.resource_id in metal.devices

    run(scenario())


def test_a_device_that_disappears_is_not_kept(metal: FakeMetal) -> None:
    metal.polls_until_active = 10**6

    async def scenario() -> None:
        metal_device = await driver()
        task = asyncio.ensure_future(metal_device.create(INPUTS))
        await eventually(lambda: metal.count("GET", "") > 2)
        metal.devices.clear()
        with pytest.raises(PluginError, match="disappeared") as failure:
            await task
        assert not isinstance(failure.value, InitFailed)

    run(scenario())


def test_changes_in_place_and_reinstallation(metal: FakeMetal) -> None:
    async def scenario() -> None:
        metal_device = await driver()
        identifier, state = await metal_device.create(await metal_device.inputs(INPUTS))
        changed = await metal_device.inputs({**INPUTS, "hostname": "other", "tags": ["c"], "alwaysPxe": True})
        kept = await metal_device.update(identifier, plain_map(state), changed)
        assert (kept["hostname"], kept["tags"], kept["alwaysPxe"]) == ("other", ["c"], True)
        assert kept["__meta"] == plain(state["__meta"])
        fewer = {name: value for name, value in changed.items() if name not in ("tags", "ipxeScriptUrl", "hostname")}
        kept = await metal_device.update(identifier, kept, fewer)
        assert (kept["tags"], kept["ipxeScriptUrl"], kept["hostname"]) == ([], "", "other")
        assert await metal_device.diff(kept, fewer) == {}
        again = {**fewer, "userData": "new", "reinstall": {"enabled": True, "preserveData": True}}
        kept = await metal_device.update(identifier, kept, again)
        assert (kept["userData"], kept["state"]) == ("new", "active")

    run(scenario())
    bodies = [(method, body) for method, _, body in metal.requests if method in ("PUT", "POST")][1:]
    assert bodies == [
        ("PUT", {"hostname": "other", "tags": ["c"], "always_pxe": True}),
        ("PUT", {"tags": [], "ipxe_script_url": ""}),
        ("PUT", {"userdata": "new"}),
        ("POST", {"type": "reinstall", "preserve_data": True}),
    ]


def test_release_waits_until_it_is_gone_and_is_idempotent(metal: FakeMetal) -> None:
    async def scenario() -> None:
        metal_device = await driver()
        identifier, state = await metal_device.create(INPUTS)
        await metal_device.delete(identifier, plain_map(state))
        assert metal.requests[-1][0] == "GET"
        assert metal.requests[-2] == ("DELETE", f"/metal/v1/devices/{identifier}", {"force_delete": False})
        await metal_device.delete(identifier, plain_map(state))
        assert await metal_device.read(identifier, plain_map(state), INPUTS) == ("", {}, {})

    run(scenario())


def test_reading_shows_drift_in_the_inputs_and_imports(metal: FakeMetal) -> None:
    async def scenario() -> None:
        metal_device = await driver()
        inputs = await metal_device.inputs(INPUTS)
        identifier, state = await metal_device.create(inputs, timeout=600)
        kept = plain_map(state)
        seen = {**kept, "projectSshKeyIds": [], "ipAddresses": [], "reinstall": None}
        assert await metal_device.read(identifier, kept, inputs) == (identifier, seen, inputs)
        metal.devices[identifier]["tags"] = ["drifted"]
        _, seen, found = await metal_device.read(identifier, kept, inputs)
        assert found["tags"] == ["drifted"]
        assert await metal_device.diff(seen, inputs) == {"tags[0]": "UPDATE", "tags[1]": "ADD"}
        _, _, imported = await metal_device.read(identifier, {}, {})
        assert imported == {
            "__defaults": [],
            "billingCycle": "hourly",
            "facilities": ["lab1"],
            "hostname": "lab-worker-0",
            "ipxeScriptUrl": "http://boot/a",
            "metro": "lb",
            "operatingSystem": "custom_ipxe",
            "plan": "c3.small.x86",
            "projectId": PROJECT,
            "tags": ["drifted"],
        }

    run(scenario())


def test_a_refresh_tells_the_facility_that_was_chosen_and_leaves_spellings(metal: FakeMetal) -> None:
    async def scenario() -> None:
        metal_device = await driver()
        preferred = {name: value for name, value in INPUTS.items() if name != "metro"} | {"facilities": ["x", "lab1"]}
        inputs = await metal_device.inputs(preferred)
        identifier, state = await metal_device.create(inputs)
        assert await metal_device.diff(plain_map(state), inputs) == {}
        _, _, seen = await metal_device.read(identifier, plain_map(state), inputs)
        assert seen["facilities"] == ["lab1"]
        inputs = await metal_device.inputs({**INPUTS, "storage": '{ "disks": [] }'})
        identifier, state = await metal_device.create(inputs)
        _, _, seen = await metal_device.read(identifier, plain_map(state), inputs)
        assert (seen["metro"], seen["storage"]) == ("LB", '{ "disks": [] }')

    run(scenario())


NOTHING: dict[str, str] = {}
RESERVED = {"waitForReservationDeprovision": "UPDATE", "hardwareReservationId": "ADD_REPLACE"}
DIFFERENCES: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({}, NOTHING),
    ({"hostname": "x"}, {"hostname": "UPDATE"}),
    ({"hostname": None}, NOTHING),
    ({"hostname": UNKNOWN}, {"hostname": "UPDATE"}),
    ({"description": "x"}, {"description": "ADD"}),
    ({"tags": ["a", "c"]}, {"tags[1]": "UPDATE"}),
    ({"tags": ["a"]}, {"tags[1]": "DELETE"}),
    ({"tags": ["a", "b", "c"]}, {"tags[2]": "ADD"}),
    ({"tags": None}, {"tags[0]": "DELETE", "tags[1]": "DELETE"}),
    ({"tags": [UNKNOWN, "b"]}, {"tags": "UPDATE"}),
    ({"userData": "y"}, {"userData": "UPDATE_REPLACE"}),
    ({"userData": None}, {"userData": "DELETE_REPLACE"}),
    ({"userData": UNKNOWN}, {"userData": "UPDATE_REPLACE"}),
    ({"userData": "y", "reinstall": {"enabled": True}}, {"reinstall.enabled": "ADD", "userData": "UPDATE"}),
    ({"customData": "y"}, {"customData": "ADD_REPLACE"}),
    ({"operatingSystem": "ubuntu_20_04"}, {"operatingSystem": "UPDATE_REPLACE"}),
    (
        {"operatingSystem": "u", "reinstall": {"enabled": True}},
        {"reinstall.enabled": "ADD", "operatingSystem": "UPDATE_REPLACE"},
    ),
    ({"plan": "z"}, {"plan": "UPDATE_REPLACE"}),
    ({"projectId": UNKNOWN}, {"projectId": "UPDATE_REPLACE"}),
    ({"metro": "da"}, {"metro": "UPDATE_REPLACE"}),
    ({"metro": "lb"}, NOTHING),
    ({"metro": None}, NOTHING),
    ({"metro": None, "facilities": ["lab1", "da11"]}, NOTHING),
    ({"metro": None, "facilities": ["any"]}, NOTHING),
    ({"metro": None, "facilities": ["da11"]}, {"facilities[0]": "UPDATE_REPLACE"}),
    ({"ipxeScriptUrl": "z"}, {"ipxeScriptUrl": "UPDATE"}),
    ({"alwaysPxe": True}, {"alwaysPxe": "UPDATE"}),
    ({"billingCycle": "monthly"}, {"billingCycle": "UPDATE_REPLACE"}),
    ({"hardwareReservationId": "h"}, {"hardwareReservationId": "ADD_REPLACE"}),
    ({"projectSshKeyIds": ["a"]}, {"projectSshKeyIds[0]": "ADD_REPLACE"}),
    ({"storage": "{}"}, {"storage": "ADD_REPLACE"}),
    ({"terminationTime": "2031-09-03T16:32:00Z"}, {"terminationTime": "ADD"}),
    ({"waitForReservationDeprovision": True, "hardwareReservationId": "h"}, RESERVED),
    ({"forceDetachVolumes": True}, {"forceDetachVolumes": "UPDATE"}),
]
"""Measured with the official plug-in, on the same state."""


@pytest.mark.parametrize(("change", "found"), DIFFERENCES)
def test_differences_are_those_of_the_official_plugin(change: dict[str, Any], found: dict[str, str]) -> None:
    wanted = {name: value for name, value in {**INPUTS, **DEFAULTS, **change}.items() if value is not None}

    async def scenario() -> dict[str, str]:
        seen = await (await driver()).diff(STATE, wanted)
        ignored = tuple({path.split(".")[0].split("[")[0] for path in seen})
        assert await (await driver()).diff(STATE, wanted, ignored) == {}
        return seen

    assert run(scenario()) == found


WRONG: list[tuple[dict[str, Any], set[str]]] = [
    ({"plan": None, "projectId": None}, {"plan", "projectId"}),
    ({"tag": ["a"]}, {"tag"}),
    ({"facilities": ["lab1"]}, {"facilities"}),
    ({"metro": None}, {"metro"}),
    ({"tags": "x", "alwaysPxe": "yes"}, {"tags", "alwaysPxe"}),
    ({"ipxeScriptUrl": None, "userData": None}, {"ipxeScriptUrl"}),
    ({"userData": "#!ipxe\nchain"}, {"userData"}),
    ({"operatingSystem": "debian_12"}, {"ipxeScriptUrl"}),
    ({"storage": "{", "terminationTime": "soon"}, {"storage", "terminationTime"}),
    ({"ipAddresses": [{"type": "ipv5"}]}, {"ipAddresses[0].type"}),
    ({"waitForReservationDeprovision": True}, {"waitForReservationDeprovision"}),
]


@pytest.mark.parametrize(("change", "wrong"), WRONG)
def test_wrong_inputs_are_refused_before_anything_is_ordered(change: dict[str, Any], wrong: set[str]) -> None:
    given = {name: value for name, value in {**INPUTS, **change}.items() if value is not None}

    async def scenario() -> dict[str, str]:
        _, failures = await (await driver()).check(given)
        return failures

    failures = run(scenario())
    assert failures.keys() == wrong
    assert all(name in reason for name, reason in failures.items())


def test_what_is_missing_is_refused_by_name() -> None:
    async def scenario() -> None:
        metal_device = await driver()
        plugin = metal_device.plugin
        with pytest.raises(
            NotInTheLab, match=r"equinix-metal does not implement .*index/volume:Volume; install the official"
        ):
            await Driver(plugin, "equinix-metal:index/volume:Volume").check({})
        with pytest.raises(NotInTheLab, match="index/getVolume:getVolume"):
            await plugin.invoke(api.InvokeRequest("equinix-metal:index/getVolume:getVolume", {}))

    run(scenario())


def test_the_configuration_is_checked() -> None:
    async def failures(given: dict[str, Any]) -> set[str]:
        request = api.CheckRequest("", {}, wrap_map(given), b"")
        response = await EquinixMetalPlugin(Heard()).check_config(request)
        return {failure.property for failure in response.failures or []}

    assert run(failures({"authToken": UNKNOWN, "maxRetries": "3", "version": "3.2.1"})) == set()
    assert run(failures({"maxRetries": "many", "endpoint": "x"})) == {"maxRetries", "endpoint"}


def test_projects(metal: FakeMetal) -> None:
    token = "equinix-metal:index/project:Project"
    bgp = {"deploymentType": "local", "asn": 65000, "md5": "s3cret"}

    async def scenario() -> None:
        project = await driver(token)
        inputs = await project.inputs({"bgpConfig": bgp, "backendTransfer": True})
        assert inputs["name"].startswith("it-")
        assert inputs["__defaults"] == ["name"]
        assert (await project.check({}, old=inputs))[0]["name"] == inputs["name"]
        identifier, state = await project.create(inputs)
        kept = plain_map(state)
        assert kept == {
            "id": identifier,
            "name": inputs["name"],
            "organizationId": ORGANIZATION,
            "created": metal.now,
            "updated": metal.now,
            "backendTransfer": True,
            "bgpConfig": {**bgp, "status": "enabled", "maxPrefix": 10},
        }
        inner: Any = state["bgpConfig"].value
        assert inner["md5"].is_secret
        assert await project.diff(kept, inputs) == {}
        assert await project.diff(kept, {**inputs, "organizationId": "another"}) == {"organizationId": "UPDATE_REPLACE"}
        assert (await project.update(identifier, kept, {**inputs, "name": "new"}))["name"] == "new"
        with pytest.raises(PluginError, match="bgpConfig cannot be removed"):
            await project.update(identifier, kept, {"name": "new"})
        await project.delete(identifier, kept)
        await project.delete(identifier, kept)
        assert metal.projects == {}

    run(scenario())


def test_ssh_keys(metal: FakeMetal) -> None:
    given = {"publicKey": "ssh-ed25519 AAAA", "name": "mine", "projectId": PROJECT}

    async def scenario() -> None:
        key = await driver("equinix-metal:index/projectSshKey:ProjectSshKey")
        inputs = await key.inputs(given)
        identifier, state = await key.create(inputs)
        kept = plain_map(state)
        assert kept == {
            **given,
            "id": identifier,
            "fingerprint": "aa:bb",
            "created": metal.now,
            "updated": metal.now,
            "ownerId": PROJECT,
        }
        assert await key.diff(kept, inputs) == {}
        assert await key.diff(kept, {**inputs, "publicKey": "z"}) == {"publicKey": "UPDATE_REPLACE"}
        assert await key.read(identifier, kept, inputs) == (identifier, kept, inputs)
        assert (await key.update(identifier, kept, {**inputs, "name": "new"}))["name"] == "new"
        await key.delete(identifier, kept)
        await key.delete(identifier, kept)
        assert await key.read(identifier, kept, inputs) == ("", {}, {})

    run(scenario())


def test_errors_of_the_api_name_request_and_reason(metal: FakeMetal) -> None:
    async def scenario() -> None:
        metal_device = await driver()
        with pytest.raises(PluginError) as failure:
            await metal_device.update("nobody", STATE, {**INPUTS, "hostname": "x"})
        assert str(failure.value) == "Metal API: PUT /devices/nobody: 404 Not found"
        assert "token" not in json.dumps(str(failure.value))

    run(scenario())
