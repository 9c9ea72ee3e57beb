"""What a change costs, from the engine's events."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.automation import EngineEvent

from tools.cost import ADDRESSES, GATEWAY, Bill
from tools.state import DEVICE, SPOT_REQUEST, STACK_TYPE

LINES = [
    {"what": "3 workers", "kind": "machine", "plan": "big", "each": 1.5, "hourly": 4.5, "lasting": True},
    {"what": "1 worker", "kind": "spot", "plan": "big", "each": 0.4, "hourly": 0.4, "lasting": True, "note": "spot"},
    {"what": "1 reserved", "kind": "reserved", "plan": "big", "each": 0, "hourly": 0, "lasting": True},
    {"what": "1 bootstrap", "kind": "machine", "plan": "small", "each": 0.75, "hourly": 0.75, "lasting": False},
    {"what": "8 addresses", "kind": "address", "plan": "public_ipv4", "lasting": True, "count": 8},
]
COST = {"hourly": 4.9, "hoursPerMonth": 730, "unknown": ["8 addresses"], "source": "a list", "lines": LINES}
BIG = {"plan": "big"}


def step(
    op: str, name: str, type_: str = DEVICE, old: Any = None, new: Any = None, *, before: bool = True
) -> EngineEvent:
    """The engine's word about one resource: its inputs, of a stack its outputs."""
    urn, part = f"urn:pulumi:t::p::{type_}::{name}", "outputs" if type_ == STACK_TYPE else "inputs"
    states = {
        which: {"type": type_, "urn": urn, "custom": True, "inputs": {}, "outputs": {}, part: values}
        for which, values in (("old", old), ("new", new))
        if values is not None
    }
    metadata = {"op": op, "urn": urn, "type": type_, **states}
    kind = "resourcePreEvent" if before else "resOutputsEvent"
    return EngineEvent.from_json({kind: {"metadata": metadata}, "sequence": 1, "timestamp": 1})


def bill(*events: EngineEvent, old: Any = None, new: Any = COST) -> Bill:
    found = Bill()
    outputs = {"old": {"cost": old} if old else {}, "new": {"cost": new} if new else {}}
    for event in (*events, step("same", "stack", STACK_TYPE, outputs["old"], outputs["new"], before=False)):
        found.handle(event)
    return found


def test_a_first_up() -> None:
    found = bill(step("create", "w-0", new=BIG), step("create", "w-1", new=BIG), step("create", "x", "x:y:Z", new={}))
    assert found.line() == "cost: 3.00 USD per hour, 2,190 per month"


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([step("create", "w-1", new=BIG)], "1.50 → 3.00 (+1.50) USD per hour, 1,095 → 2,190 (+1,095) per month"),
        ([step("same", "w-1", old=BIG, new=BIG)], "3.00 USD per hour, 2,190 per month"),
        ([step("delete", "w-1", old=BIG)], "3.00 → 1.50 (-1.50) USD per hour, 2,190 → 1,095 (-1,095) per month"),
        (
            [
                step("create-replacement", "w-1", old=BIG, new={"plan": "small"}),
                step("replace", "w-1", old=BIG, new={"plan": "small"}),
                step("delete-replaced", "w-1", old=BIG),
            ],
            "3.00 → 2.25 (-0.75) USD per hour, 2,190 → 1,642 (-548) per month",
        ),
        (
            [step("create", "w-1", new={**BIG, "hardwareReservationId": "next-available"})],
            "1.50 USD per hour, 1,095 per month",
        ),
        (
            [step("create", "s", SPOT_REQUEST, new={"instanceParameters": BIG, "devicesMax": 1})],
            "1.50 → 1.90 (+0.40) USD per hour, 1,095 → 1,387 (+292) per month",
        ),
        (
            [step("create", "a", ADDRESSES, new={"quantity": 8})],
            "1.50 USD per hour, 1,095 per month; and public_ipv4, whose price is not known",
        ),
        (
            [step("delete", "a", ADDRESSES, old={"quantity": 8})],
            "1.50 USD per hour, 1,095 per month; less public_ipv4, whose price is not known",
        ),
        (
            [step("create", "g", GATEWAY, new={"privateIpv4SubnetSize": 8})],
            "1.50 USD per hour, 1,095 per month; and gateway, whose price is not known",
        ),
        (
            [step("create", "w-1", new={**BIG, "ipAddresses": [{"type": "public_ipv4", "cidr": 29}]})],
            "1.50 → 3.00 (+1.50) USD per hour, 1,095 → 2,190 (+1,095) per month;"
            " and public_ipv4, whose price is not known",
        ),
        (
            [step("create", "w-1", new={**BIG, "ipAddresses": [{"type": "public_ipv4", "cidr": 31}]})],
            "1.50 → 3.00 (+1.50) USD per hour, 1,095 → 2,190 (+1,095) per month",
        ),
    ],
)
def test_changes(events: list[EngineEvent], told: str) -> None:
    assert bill(step("same", "w-0", old=BIG, new=BIG), *events).line() == f"cost: {told}"


def test_what_is_not_ordered_any_more_has_its_last_price() -> None:
    rest = {**COST, "lines": [{**LINES[0], "plan": "small", "each": 0.75}]}
    found = bill(step("delete", "w-0", old=BIG), step("create", "w-1", new={"plan": "small"}), old=COST, new=rest)
    assert found.line() == "cost: 1.50 → 0.75 (-0.75) USD per hour, 1,095 → 548 (-548) per month"


def test_without_prices_and_without_orders() -> None:
    offline = {"unknown": ["everything"], "source": "a rehearsal requests no prices", "lines": []}
    found = bill(step("create", "w-0", new=BIG), new=offline)
    assert found.line() == "cost: not known: a rehearsal requests no prices" and found.table() is None
    assert bill(new=None).line() == ""


def test_the_table_says_what_is_not_known() -> None:
    shown = bill().table()
    assert shown is not None and shown.row_count == len(LINES)
    columns = [list(column.cells) for column in shown.columns]
    assert columns[2] == ["4.50", "0.40", "0.00", "0.75", "not known"]
    assert columns[3] == ["", "spot", "", "while installing", ""]
