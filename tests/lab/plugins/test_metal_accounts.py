"""Spot market requests, API keys, organizations, reserved hardware: what is asked for, kept, taken for a difference.

States and differences are what the official plug-in answered on the same API.
"""

from __future__ import annotations

from typing import Any

import pytest

from lab.plugins.base import InitFailed, PluginError
from lab.plugins.equinix_metal import client, spot_market_request
from lab.plugins.values import plain_map
from tests.lab.plugins.fake_metal import PROJECT, Fault
from tests.lab.plugins.fake_platform import FakePlatform
from tests.lab.plugins.harness import run
from tests.lab.plugins.test_metal_faults import clocks
from tests.lab.plugins.test_metal_networks import made, token
from tests.lab.plugins.test_metal_resources import DEVICE, INPUTS, driver, metal, quick_polls

__all__ = ["metal", "quick_polls"]

Json = dict[str, Any]
PARAMETERS: Json = {
    "hostname": "h",
    "plan": "c3.small.x86",
    "operatingSystem": "custom_ipxe",
    "billingCycle": "hourly",
    "ipxeScriptUrl": "http://boot/a",
    "userdata": "{}",
    "tags": ["b", "a"],
}
SPOT: Json = {
    "projectId": PROJECT,
    "devicesMin": 1,
    "devicesMax": 1,
    "maxBidPrice": 0.43,
    "metro": "LB",
    "instanceParameters": PARAMETERS,
    "waitForDevices": True,
}


@pytest.fixture(autouse=True)
def quick_spot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(spot_market_request, "FIRST_POLL_SECONDS", 0.01)
    monkeypatch.setattr(spot_market_request, "LONGEST_POLL_SECONDS", 0.01)


def test_a_spot_market_request_brings_devices_and_takes_them_along(metal: FakePlatform) -> None:
    async def scenario() -> None:
        request, identifier, kept, inputs = await made("SpotMarketRequest", SPOT)
        assert metal.requests[0][2] == {
            "devices_min": 1,
            "devices_max": 1,
            "max_bid_price": 0.43,
            "metro": "lb",
            "instance_parameters": {
                "hostname": "h",
                "plan": "c3.small.x86",
                "operating_system": "custom_ipxe",
                "billing_cycle": "hourly",
                "ipxe_script_url": "http://boot/a",
                "userdata": "{}",
                "tags": ["b", "a"],
            },
        }
        empty: Json = {"customdata": "", "description": "", "termintationTime": "", "locked": False, "alwaysPxe": False}
        lists: Json = {"features": [], "projectSshKeys": [], "userSshKeys": []}
        assert kept.pop("__meta") == (
            '{"e2bfb730-ecaa-11e6-8f88-34363bc7c4c0":{"create":1200000000000,"delete":1200000000000}}'
        )
        parameters = {**PARAMETERS, **empty, **lists}
        expected = {**SPOT, "id": identifier, "metro": "lb", "facilities": ["lab1"], "instanceParameters": parameters}
        assert kept == expected
        assert (await request.read(identifier, kept, inputs))[2] == inputs
        dearer = {**inputs, "maxBidPrice": 0.425}
        assert (await request.read(identifier, kept, dearer))[2]["maxBidPrice"] == 0.43
        assert len(metal.devices) == 1
        await request.delete(identifier, kept)
        assert ("DELETE", f"/metal/v1/spot-market-requests/{identifier}", {"force_termination": True}) in metal.requests
        assert (metal.devices, metal.records["spot-market-requests"]) == ({}, {})
        await request.delete(identifier, kept)
        assert (await request.read(identifier, kept, inputs))[0] == ""

    run(scenario())


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"maxBidPrice": 0.5}, {}),
        ({"maxBidPrice": 0.01}, {}),
        ({"maxBidPrice": 99}, {"maxBidPrice": "UPDATE_REPLACE"}),
        ({"metro": "da"}, {"metro": "UPDATE_REPLACE"}),
        ({"devicesMax": 2}, {"devicesMax": "UPDATE_REPLACE"}),
        ({"waitForDevices": None}, {"waitForDevices": "DELETE_REPLACE"}),
        ({"instanceParameters": {**PARAMETERS, "plan": "x"}}, {"instanceParameters.plan": "UPDATE_REPLACE"}),
    ],
)
def test_every_change_of_a_request_replaces_it(metal: FakePlatform, change: Json, found: dict[str, str]) -> None:
    """A price is officially another one only from fifty times the old one on."""

    async def scenario() -> None:
        request, _, kept, inputs = await made("SpotMarketRequest", SPOT)
        wanted = {name: value for name, value in {**inputs, **change}.items() if value is not None}
        assert await request.diff(kept, wanted) == found

    run(scenario())


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"facilities": ["lab1"]}, {"facilities"}),
        ({"devicesMin": 2}, {"devicesMin"}),
        ({"instanceParameters": {**PARAMETERS, "plan": None}}, {"instanceParameters.plan"}),
        ({"instanceParameters": {**PARAMETERS, "hostnames": ["a"]}}, {"instanceParameters.hostnames"}),
        ({"instanceParameters": {**PARAMETERS, "userdata": "#!ipxe"}}, {"instanceParameters.userdata"}),
        ({"instanceParameters": {**PARAMETERS, "operatingSystem": "x"}}, {"instanceParameters.ipxeScriptUrl"}),
    ],
)
def test_wrong_requests_are_refused(change: Json, wrong: set[str]) -> None:
    async def scenario() -> None:
        _, failures = await (await driver(token("SpotMarketRequest"))).check({**SPOT, **change})
        assert set(failures) == wrong

    run(scenario())


def test_a_request_without_devices_is_kept_and_waited_for_again(metal: FakePlatform) -> None:
    async def scenario() -> None:
        request = await driver(token("SpotMarketRequest"))
        inputs = await request.inputs(SPOT)
        metal.polls_until_active = 10**6
        answer = FakePlatform.add_device
        metal.add_device = lambda **values: answer(metal, **{**values, "state": "queued"})
        with pytest.raises(InitFailed, match=r"0 of 1 devices active after 0 s") as failure:
            await request.create(inputs, timeout=0.05)
        for device in metal.devices.values():
            device["state"] = "active"
        kept = plain_map(failure.value.properties)
        assert (await request.update(failure.value.resource_id, kept, inputs))["devicesMin"] == 1
        for device in metal.devices.values():
            device["state"] = "failed"
        with pytest.raises(PluginError, match=r"a device of spot market request .* failed, .*: replace it"):
            await request.update(failure.value.resource_id, kept, inputs)

    run(scenario())


@pytest.mark.parametrize(("kind", "after"), [("status", True), ("status", False), ("reset", True), ("half", True)])
def test_a_request_whose_outcome_is_unknown_is_known_by_its_devices(
    metal: FakePlatform, kind: str, after: bool
) -> None:
    clocks(metal)

    async def scenario() -> None:
        request = await driver(token("SpotMarketRequest"))
        await request.create({**SPOT, "instanceParameters": {**PARAMETERS, "hostname": "other"}})
        metal.faults.append(Fault("POST", "/spot-market-requests", kind, after=after))
        identifier, _ = await request.create(SPOT)
        assert [device["hostname"] for device in metal.records["spot-market-requests"][identifier]["devices"]] == ["h"]

    run(scenario())
    assert len(metal.records["spot-market-requests"]) == 2


def test_a_request_that_tells_nothing_is_not_repeated(metal: FakePlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks(metal)
    monkeypatch.setattr(spot_market_request, "TELLING_SECONDS", 0.02)
    silent = {"devices_min": 1, "devices_max": 1, "max_bid_price": 0.43, "devices": []}
    metal.faults.append(Fault("POST", "/spot-market-requests", "status"))

    async def scenario() -> None:
        request = await driver(token("SpotMarketRequest"))
        found = metal.record("spot-market-requests", silent)
        with pytest.raises(PluginError, match=f"nobody knows whether .* for h was taken: {found['id']} may be it"):
            await request.create(SPOT)

    run(scenario())
    assert metal.count("POST", "/spot-market-requests") == 1


def test_reserved_hardware_is_waited_for_until_it_can_be_ordered_again(metal: FakePlatform) -> None:
    metal.provisionable_after = 2

    async def scenario() -> None:
        device = await driver(DEVICE)
        reserved = {"hardwareReservationId": "next-available", "waitForReservationDeprovision": True}
        inputs = await device.inputs({**INPUTS, **reserved})
        identifier, state = await device.create(inputs)
        assert metal.requests[0][2]["hardware_reservation_id"] == "next-available"
        metal.devices[identifier]["hardware_reservation"] = {"id": "r"}
        _, kept, _ = await device.read(identifier, plain_map(state), inputs)
        assert (kept["hardwareReservationId"], kept["deployedHardwareReservationId"]) == ("next-available", "r")
        assert await device.diff(kept, inputs) == {}
        assert await device.diff(kept, {**inputs, "hardwareReservationId": "r"}) == {}
        await device.delete(identifier, kept)
        assert metal.count("GET", "/hardware-reservations/r") == 3

    run(scenario())
