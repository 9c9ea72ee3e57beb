"""Functions of the stand-in for the plug-in equinix-metal: what the program asks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pulumi.provider.experimental import provider as api

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.functions import FUNCTIONS
from lab.plugins.values import plain_map, wrap_map
from tests.lab.plugins.fake_metal import PROJECT
from tests.lab.plugins.fake_platform import FakePlatform
from tests.lab.plugins.harness import run
from tests.lab.plugins.test_metal_accounts import SPOT, quick_spot
from tests.lab.plugins.test_metal_networks import made
from tests.lab.plugins.test_metal_resources import DEVICE, driver, metal

__all__ = ["metal", "quick_spot"]

_ROOT = Path(__file__).resolve().parents[3]


async def _asked(name: str, /, **arguments: Any) -> dict[str, Any]:
    """What a function answers."""
    plugin = (await driver(DEVICE)).plugin
    response = await plugin.invoke(api.InvokeRequest(f"equinix-metal:index/{name}:{name}", wrap_map(arguments)))
    assert not response.failures, [failure.reason for failure in response.failures or []]
    assert not any(value.is_secret for value in (response.return_value or {}).values())
    return plain_map(response.return_value or {})


def test_it_knows_the_functions_that_the_program_calls_and_no_others() -> None:
    sources = [path.read_text() for room in ("components", "stacks") for path in (_ROOT / room).rglob("*.py")]
    called = {token for text in sources for token in re.findall(r'"(equinix-metal:index/get\w+:get\w+)"', text)}
    assert called == FUNCTIONS.keys() and called


def test_a_reserved_block_is_found(metal: FakePlatform) -> None:
    block = metal.add_block(PROJECT, {"quantity": 4, "type": "public_ipv4", "facility": "lab1"})
    found = run(_asked("getReservedIpBlock", id=block["id"]))
    told = {name: found[name] for name in ("id", "cidrNotation", "quantity", "type")}
    assert told == {"id": block["id"], "cidrNotation": "192.0.2.128/30", "quantity": 4, "type": "public_ipv4"}
    assert not found.keys() & {"global", "description", "tags"}


def test_a_spot_request_is_found_with_its_machines(metal: FakePlatform) -> None:
    async def scenario() -> None:
        _, request, _, _ = await made("SpotMarketRequest", SPOT)
        found = await _asked("getSpotMarketRequest", requestId=request)
        assert found["deviceIds"] == list(metal.devices)
        assert (found["metro"], found["maxBidPrice"], found["plan"]) == ("lb", 0.43, "c3.small.x86")

    run(scenario())


def test_what_is_not_there_and_what_is_not_given_is_told(metal: FakePlatform) -> None:
    async def scenario() -> None:
        with pytest.raises(PluginError, match="there is no such thing"):
            await _asked("getReservedIpBlock", id="none")
        plugin = (await driver(DEVICE)).plugin
        token = "equinix-metal:index/getSpotMarketRequest:getSpotMarketRequest"
        response = await plugin.invoke(api.InvokeRequest(token, {}))
        assert [failure.property for failure in response.failures or []] == ["requestId"]

    run(scenario())
