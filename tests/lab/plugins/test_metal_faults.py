"""The API misbehaves: what is repeated, what is not, and that nothing is ordered twice."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trustme

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal import client, special
from lab.plugins.equinix_metal.client import Answer, Client, Gone, Unreachable, made_since
from lab.plugins.equinix_metal.device import Watch
from lab.plugins.equinix_metal.table import TYPES
from tests.lab.metal_api.harness import IDENTITY
from tests.lab.plugins.emulated import Emulation
from tests.lab.plugins.harness import opened
from tests.lab.plugins.metal_types import DEVICE, PROJECT, SPOT, VLAN, given, made, without

pytestmark = pytest.mark.usefixtures("closed")

ORDERS = {kind: it.orders.rsplit("/", 1)[-1] or "batches" for kind, it in TYPES.items()}
ORDERS_LOST = [
    *((kind, "reset", "after") for kind in sorted(TYPES)),
    *((kind, "status", "before") for kind in sorted(TYPES)),
    *(("Device", *way) for way in (("status", "after"), ("reset", "before"), ("half_body", "after"))),
]
"""Each order is lost after and before it is carried out; one in every way."""


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the client pauses; it takes no time."""
    seconds: list[float] = []

    async def note(wanted: float) -> None:
        seconds.append(wanted)
        await asyncio.sleep(0)

    monkeypatch.setattr(client, "asyncio", SimpleNamespace(sleep=note))
    return seconds


def asking() -> Client:
    made_client = Client()
    made_client.token = IDENTITY.token
    opened.append(made_client)
    return made_client


@pytest.mark.parametrize(("kind", "fault", "when"), ORDERS_LOST)
async def test_an_order_whose_outcome_is_unknown_is_looked_for(
    metal: Emulation, kind: str, fault: str, when: str
) -> None:
    """One that was there before is not taken for it."""
    wanted = await given(kind)
    there = TYPES[kind].orders.format_map(wanted) or f"/ports/{wanted['portId']}/vlan-assignments/batches"
    before, asked = set(metal.ids(there)), metal.count("POST", f"/{ORDERS[kind]}")
    metal.fault(fault, method="POST", path=f"/{ORDERS[kind]}$", when=when)
    _, identifier, state, _ = await made(kind, wanted)
    [new] = set(metal.ids(there)) - before
    assert new == identifier or state["vlanIds"] == wanted["vlanIds"]
    assert metal.count("POST", f"/{ORDERS[kind]}") - asked == (2 if when == "before" else 1)


async def test_only_what_the_order_may_have_made_is_adopted(metal: Emulation) -> None:
    others = [(await made("Device", {**DEVICE, "tags": tags}))[1] for tags in (["a", "c"], ["a"])]
    metal.fault("status", method="POST", path="/devices$")
    assert (await made("Device"))[1] not in others
    assert metal.count("POST", "/devices") == 4


async def test_what_is_older_than_the_order_is_not_adopted(metal: Emulation) -> None:
    before = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    older = {"id": "older", "description": "d", "metro_code": "lb", "vxlan": 7, "created_at": before}
    metal.fault("status", method="POST", path="/virtual-networks$")
    metal.fault("status", method="GET", path="/virtual-networks$", status=200, body={"virtual_networks": [older]})
    assert (await made("Vlan"))[1] != "older"
    assert metal.count("POST", "/virtual-networks") == 2


@pytest.mark.parametrize("skew", [timedelta(hours=-3), timedelta(0), timedelta(hours=3)])
@pytest.mark.parametrize(("age", "ours"), [(1, True), (6, True), (60, False)])
def test_age_is_told_by_the_api_s_clock(skew: timedelta, age: int, ours: bool) -> None:
    now = datetime.now(UTC)
    created = (now + skew - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = Answer(document={"created_at": created}, server_time=now + skew)
    assert made_since(entry, now - timedelta(seconds=5)) is ours
    assert not made_since(Answer(document={}), now)


@pytest.mark.parametrize(
    ("kind", "wanted", "nameless"),
    [
        ("Device", without(DEVICE, "hostname"), "a device without hostname"),
        ("Vlan", without(VLAN, "description"), "a virtual network without vxlan and description"),
        (
            "ReservedIpBlock",
            {"projectId": PROJECT, "quantity": 1, "metro": "lb"},
            "a block without description and tags",
        ),
    ],
)
async def test_an_order_that_nothing_tells_from_others_is_not_repeated(
    metal: Emulation, kind: str, wanted: dict[str, Any], nameless: str
) -> None:
    metal.fault("status", method="POST", path=f"/{ORDERS[kind]}$")
    with pytest.raises(PluginError, match=f"{nameless} cannot be looked for: look in the project"):
        await made(kind, wanted)
    assert metal.count("POST", f"/{ORDERS[kind]}") == 1


async def test_a_spot_request_that_tells_nothing_is_not_repeated(
    metal: Emulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(special, "TELLING_SECONDS", 0.05)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    silent = {"id": "s", "devices_min": 1, "devices_max": 1, "max_bid_price": 0.73, "created_at": now}
    metal.fault("status", method="POST", path="/spot-market-requests$")
    body = {"spot_market_requests": [silent]}
    metal.fault("status", method="GET", path="/spot-market-requests$", status=200, body=body, count=None)
    with pytest.raises(PluginError, match=r"nobody knows whether .* for spot was taken: s may be it"):
        await made("SpotMarketRequest", SPOT)
    assert metal.count("POST", "/spot-market-requests") == 1


async def test_too_many_requests_are_repeated_when_the_api_says(metal: Emulation, waits: list[float]) -> None:
    metal.fault("status", method="POST", status=429, headers={"Retry-After": "7"}, count=2)
    metal.fault("status", method="GET", status=429, headers={"Retry-After": "600"})
    vlan, identifier, state, inputs = await made("Vlan")
    await vlan.read(identifier, state, inputs)
    assert waits == [7.0, 7.0, 30.0]
    assert metal.count("GET", "/virtual-networks") == 0
    assert len(metal.ids(f"/projects/{PROJECT}/virtual-networks")) == 1


async def test_refusals_are_not_repeated_and_name_request_and_reason(metal: Emulation) -> None:
    metal.fault("status", method="POST", status=422, body={"errors": ["told to", "fail"]})
    message = f"^Metal API: POST /projects/{PROJECT}/virtual-networks: 422 told to; fail$"
    with pytest.raises(PluginError, match=message) as failure:
        await made("Vlan")
    assert IDENTITY.token not in str(failure.value)
    assert metal.count("POST", "/virtual-networks") == 1


@pytest.mark.parametrize("status", [503, 429])
async def test_attempts_are_bounded_and_wait_longer_each_time(
    metal: Emulation, waits: list[float], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(client, "RETRIES", 3)
    headers = {"Retry-After": "no number"}
    metal.fault("status", status=status, headers=headers, path="/virtual-networks", count=None)
    with pytest.raises(Unreachable, match="after 4 attempts"):
        await asking().get("/virtual-networks/x")
    assert metal.count("GET", "/virtual-networks/x") == 4
    assert len(waits) == 3 and waits[0] < waits[1] < waits[2]


@pytest.mark.parametrize("fault", ["status", "reset"])
async def test_polling_and_release_survive_faults(metal: Emulation, fault: str) -> None:
    metal.fault(fault, method="GET", count=2)
    metal.fault(fault, method="DELETE", when="after")
    device, identifier, state, _ = await made("Device")
    await device.delete(identifier, state)
    assert metal.ids(f"/projects/{PROJECT}/devices") == []


async def test_a_404_that_is_not_the_api_speaking_is_no_proof(metal: Emulation) -> None:
    metal.fault("status", status=404, body="a page of something in between")
    with pytest.raises(PluginError, match="404") as failure:
        await asking().get("/devices/x")
    assert not isinstance(failure.value, Gone)
    with pytest.raises(Gone):
        await asking().get("/devices/x")


async def test_nobody_listens(metal: Emulation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METAL_API_URL", "http://127.0.0.1:1/metal/v1")
    monkeypatch.setattr(client, "RETRIES", 1)
    with pytest.raises(Unreachable, match="cannot connect"):
        await asking().get("/projects")


async def test_certificates_are_verified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        monkeypatch.setenv("METAL_API_URL", f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(Unreachable, match="certificate is not trusted"):
            await asking().get("/projects")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert (await asking().get("/projects")).document == {}

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)


async def test_one_that_disappears_is_told_to_who_waits_for_it_only(metal: Emulation) -> None:
    ids = [(await made("Device"))[1] for _ in range(5)]
    watch = Watch(asking(), "project")
    asked = [asyncio.ensure_future(watch.look(PROJECT, identifier)) for identifier in (*ids, "nobody")]
    *there, gone = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(gone, Gone)
    assert [document["id"] for document in there if isinstance(document, dict)] == ids


async def test_a_list_that_cannot_be_had_is_told_to_all(metal: Emulation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRIES", 1)
    metal.fault("status", method="GET", path="/devices", count=None)
    watch = Watch(asking(), "project")
    answers = await asyncio.gather(*(watch.look(PROJECT, str(each)) for each in range(6)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unreachable] * 6
