"""What orders cost: the price list's words, the sums, and what is said when a price is not known."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from pulumi.provider.experimental import provider as sdk

from metal_ipi.provider import orders
from metal_ipi.provider.configuration import MetalSettings
from metal_ipi.provider.cost import estimate, prices
from metal_ipi.provider.metal_client import MetalClient
from metal_ipi.provider.values import to_python_map, to_wire_map
from tests.provider.harness import Harness
from tests.provider.metal_answers import PLANS, TOKEN, Api, plan
from tests.provider.preflight.asking import ORDERS, machines


def read(values: Mapping[str, Any]) -> orders.Orders:
    return orders.Orders.read(values)


def cost(api: Api | None = None, **more: Any) -> dict[str, Any]:
    """The cost of the orders of a good stack, with some of them changed."""
    ordered = read({key: value for key, value in {**ORDERS, **more}.items() if value is not None})

    async def run() -> dict[str, Any]:
        settings = MetalSettings(auth_token=TOKEN, endpoint="https://api.equinix.com/metal/v1")
        async with MetalClient(settings, timeout=1, transport=(api or Api()).transport) as client:
            known = await prices.asked(client, ordered)
        return estimate.summary(estimate.lines(ordered, known), known)

    return asyncio.run(run())


def test_the_sum_of_the_price_list() -> None:
    found = cost()
    assert found["hourly"] == 5 * 1.5 and found["monthly"] == 5 * 1.5 * 730 and found["hoursPerMonth"] == 730
    assert found["installing"] == 5 * 1.5 + 0.75
    assert found["unknown"] == [] and "hourlyAtMost" not in found
    assert [(line["what"], line["plan"], line["hourly"], line["lasting"]) for line in found["lines"]] == [
        ("1 bootstrap machine", "c3.small.x86", 0.75, False),
        ("3 control-plane machines", "c3.medium.x86", 4.5, True),
        ("2 worker machines", "c3.medium.x86", 3.0, True),
    ]


def test_a_place_may_have_a_price_of_its_own() -> None:
    of_metros = [{"href": "/metal/v1/locations/metros/metro-lb", "price": {"hour": 9}},
                 {"href": "/metal/v1/locations/metros/metro-da", "price": {"hour": 1.75}}]  # fmt: skip
    of_facilities = [{"href": "/metal/v1/facilities/facility-da6", "price": {"hour": 1.6}}]
    own = plan("c3.medium.x86", 1.5, available_in_metros=of_metros, available_in=of_facilities)
    api = Api({"GET /plans": {"plans": [PLANS[0], own]}})
    assert cost(api)["hourly"] == 5 * 1.75
    assert cost(api, metro=None, facilities=["da11", "da6"])["hourly"] == 5 * 1.6
    assert cost(api, metro=None, facilities=["da11"])["hourly"] == 5 * 1.5


def test_spot_machines_cost_what_the_market_says_and_at_most_the_bid() -> None:
    workers = [machines("control-plane", 1), machines("worker", 2, spotMaxPrice=0.6)]
    found = cost(machines=workers)
    assert (found["hourly"], found["hourlyAtMost"]) == (1.5 + 2 * 0.4, 1.5 + 2 * 0.6)
    quiet = cost(Api({"GET /market/spot/prices/metros": {"spot_market_prices": {}}}), machines=workers)
    assert (quiet["hourly"], quiet["hourlyAtMost"]) == (1.5 + 2 * 0.6, 1.5 + 2 * 0.6)
    assert quiet["lines"][1]["note"] == "spot market, currently without a price: the bid"


def test_reserved_servers_are_paid_for_already_and_what_is_not_known_is_no_zero() -> None:
    found = cost(
        Api({"GET /plans": {"plans": [PLANS[0], plan("c3.medium.x86", None)]}}),
        machines=[machines("control-plane", 3, reservations=["next-available"]), machines("worker", 1)],
        addresses=[{"name": "api-address", "quantity": 1}],
    )
    reserved, worker, address = found["lines"]
    assert (reserved["hourly"], reserved["note"]) == (0, "reserved servers, which are paid for already")
    assert "hourly" not in worker and "hourly" not in address
    assert found["unknown"] == ["1 worker machine", "1 reserved address (api-address)"]


def test_what_the_list_has_no_price_of_is_told_and_a_file_may_have_it() -> None:
    ordered: dict[str, Any] = {
        "machines": [machines("bootstrap", 1, subnetLength=28), machines("worker", 2, subnetLength=29)],
        "networks": [{"name": "storage", "gatewaySize": 16}, {"name": "plain"}],
    }
    found = cost(**ordered)
    assert found["unknown"] == [
        "1 public subnet /28 (bootstrap)",
        "2 public subnets /29 (worker)",
        "1 gateway with 16 private addresses (storage)",
    ]
    assert found["hourly"] == 2 * 1.5 and found["lines"][-1]["note"] == "no price in the list"
    document = {"plans": PLANS, "address_hour": 0.005, "gateway_hour": 0.01}
    found = invoke({}, orders={**ORDERS, **ordered}, prices=document, source="prices.json")
    assert found["unknown"] == [] and found["hourly"] == 2 * 1.5 + 2 * 8 * 0.005 + 0.01
    assert found["installing"] == found["hourly"] + 1.5 + 16 * 0.005
    # What every machine has is paid with it.
    assert [line["kind"] for line in cost(machines=[machines("worker", 1, subnetLength=31)])["lines"]] == ["machine"]


def test_a_file_of_prices_needs_nobody() -> None:
    document = {"plans": PLANS, "address_hour": 0.005, "spot_market_prices": {"da": {"c3.medium.x86": {"price": 0.5}}}}
    ordered = {
        **ORDERS,
        "machines": [machines("control-plane", 3), machines("worker", 2, spotMaxPrice=1)],
        "addresses": [{"name": "services", "quantity": 8}],
    }
    found = invoke({}, orders=ordered, prices=document, source="prices.json")
    assert found["hourly"] == round(3 * 1.5 + 2 * 0.5 + 8 * 0.005, 4) and found["source"] == "prices.json"
    assert found["unknown"] == []


def invoke(config: dict[str, Any], **inputs: Any) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        harness = Harness(config)
        await harness.configure()
        answer = await harness.provider.invoke(sdk.InvokeRequest("metal-ipi:index:cost", to_wire_map(inputs)))
        assert answer.failures == [], [f"{each.property} {each.reason}" for each in answer.failures]
        return to_python_map(answer.return_value or {})

    return asyncio.run(run())


def test_without_a_price_list_the_cost_is_unknown_and_says_why() -> None:
    found = invoke({}, orders=ORDERS)
    assert found["unknown"] == ["everything"] and "hourly" not in found
    assert (
        "the price list cannot be read: the provider has no configuration for the Equinix Metal API" in found["source"]
    )


def test_the_functions_arguments_are_checked() -> None:
    with pytest.raises(AssertionError, match=r"orders\.machines\[0\]\.hostnames is required"):
        invoke({}, orders={"metro": "da", "machines": [{"role": "worker", "plan": "x", "operatingSystem": "y"}]})
