"""Misbehaviour by request: on the wire, where a real socket is needed, and on machines."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from lab.metal_api import faults
from tests.lab.metal_api.harness import IDENTITY, ORDER, PROJECT, World, on_loopback


async def test_a_status_strikes_as_often_as_it_was_told(lab: World) -> None:
    fault = {"kind": "status", "status": 429, "count": 2, "match": {"method": "POST", "path": "/devices$"}}
    await lab.post("/lab/faults", fault)
    await lab.get(f"{PROJECT}/devices", status=200)
    for _ in range(2):
        refused = await lab.client.post(f"{PROJECT}/devices", json=ORDER)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert not lab.devices
    await lab.order()


async def test_each_call_is_struck_once_and_its_repetition_is_not(lab: World) -> None:
    fault = {"kind": "status", "status": 500, "each": True}
    await lab.post("/lab/faults", fault)
    orders = [{**ORDER, "hostname": name} for name in ("one", "two")]
    statuses = [(await lab.client.post(f"{PROJECT}/devices", json=order)).status_code for order in [*orders, *orders]]
    assert statuses == [500, 500, 201, 201]
    listings = [(await lab.client.get(f"{PROJECT}/devices{query}")).status_code for query in ("", "?page=1", "")]
    assert listings == [500, 500, 200]
    told = (await lab.get("/lab/faults"))["faults"][0]
    assert told["hits"] == len(set(told["calls"])) == 4
    refused = await lab.client.post("/lab/faults", json={**fault, "count": 2})
    assert refused.status_code == 422 and "each" in refused.text


async def test_an_answer_can_be_lost_after_the_deed(lab: World) -> None:
    await lab.client.post("/lab/faults", json={"kind": "status", "status": 502, "when": "after"})
    await lab.post(f"{PROJECT}/devices", ORDER, status=502)
    assert len(lab.devices) == 1


async def test_connections_are_reset_and_bodies_halved(lab: World) -> None:
    headers = {"X-Auth-Token": IDENTITY.token}
    async with (
        on_loopback(lab) as url,
        httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, verify=False) as client,
    ):
        for fault, made in (
            ({"kind": "reset"}, 0),
            ({"kind": "reset", "when": "after"}, 1),
            ({"kind": "half_body"}, 2),
            ({"kind": "hang", "seconds": 0.1}, 2),
            ({"kind": "hang", "seconds": 0.1, "when": "after"}, 3),
        ):
            await client.post("/lab/faults", json=fault)
            with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
                await client.post(f"{PROJECT}/devices", json=ORDER)
            assert len(lab.devices) == made
        assert (await client.get("/metal/v1/plans")).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "earthquake"},
        {"kind": "status", "match": {"hostname": "x"}},
        {"kind": "no_ssh", "match": {"path": "x"}},
        {"kind": "status", "match": {"path": "("}},
        {"kind": "status", "times": 3},
    ],
)
async def test_a_fault_that_would_never_strike_is_refused(lab: World, body: dict[str, Any]) -> None:
    await lab.post("/lab/faults", body, status=422)


async def test_machine_faults_are_in_what_machines_are_served(lab: World) -> None:
    for kind in ("never_boots", "ignition_fails", "no_ssh"):
        body = {"kind": kind, "match": {"hostname": "lab-worker-.*"}}
        await lab.post("/lab/faults", body)
    device = await lab.order(userdata='{"ignition": {"version": "3.3.0"}}')
    other = await lab.order(hostname="lab-control-plane-0", userdata='{"ignition": {"version": "3.3.0"}}')
    async with lab.machine("198.51.100.3") as client:
        assert json.loads((await client.get("/userdata")).text) == {"ignition": {"version": "3.3.0"}}
        assert (await client.get(f"/ipxe/{other['id']}")).status_code == 200
    async with lab.machine("198.51.100.1") as client:
        assert (await client.get(f"/ipxe/{device['id']}")).status_code == 404
        userdata = json.loads((await client.get("/userdata")).text)
        assert userdata["ignition"]["version"] == "9.9.9"
        assert {"name": "sshd.service", "mask": True} in userdata["systemd"]["units"]


def test_a_wrong_rootfs_is_another_file() -> None:
    script = "#!ipxe\nkernel http://b/k initrd=main coreos.live.rootfs_url=http://b/r x=y\ninitrd --name main http://b/i\nboot\n"
    assert "coreos.live.rootfs_url=http://b/i x=y" in faults.with_wrong_rootfs(script)
