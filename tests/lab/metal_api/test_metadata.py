"""What machines are told, and by what they are known."""

from __future__ import annotations

import pytest

from tests.lab.metal_api.harness import PROJECT, PUBLIC_KEY, World


async def test_metadata_has_every_field_afterburn_insists_on(lab: World) -> None:
    """The fields of PacketData and below in Afterburn's src/providers/packet/mod.rs."""
    await lab.post(f"{PROJECT}/ssh-keys", {"label": "k", "key": PUBLIC_KEY})
    device = await lab.order(tags=["a"], customdata={"x": 1})
    async with lab.machine("203.0.113.1") as client:  # the private address identifies it as well
        document = (await client.get("/metadata")).json()
    for name in ("id", "hostname", "iqn", "plan", "facility", "phone_home_url"):
        assert isinstance(document[name], str)
    assert (document["id"], document["tags"], document["ssh_keys"]) == (device["id"], ["a"], [PUBLIC_KEY])
    assert document["customdata"] == {"x": 1}
    assert isinstance(document["network"]["bonding"]["mode"], int)
    assert [entry["bond"] for entry in document["network"]["interfaces"]] == ["bond0", "bond0"]
    public, private = document["network"]["addresses"]
    assert (public["address"], public["netmask"]) == ("198.51.100.1", "255.255.255.254")
    assert (private["public"], private["gateway"], private["management"]) == (False, "203.0.113.0", True)


@pytest.mark.parametrize("path", ["/metadata", "/userdata"])
async def test_strangers_are_told_nothing(lab: World, path: str) -> None:
    await lab.order(userdata="secret")
    async with lab.machine("198.51.100.99") as client:
        assert (await client.get(path)).status_code == 404


async def test_what_a_machine_says_becomes_events(lab: World) -> None:
    device = await lab.order(userdata='{"ignition": {"version": "3.3.0"}}')
    async with lab.machine("198.51.100.1") as client:
        assert (await client.get("/userdata")).text == '{"ignition": {"version": "3.3.0"}}'
        assert (await client.post("/phone-home")).status_code == 200
        body = {"state": "failed", "message": "[files] Ignition error: no space"}
        assert (await client.post("/events", json=body)).status_code == 200
        for wrong in ("[]", "{"):
            assert (await client.post("/events", content=wrong)).status_code == 422
    events = (await lab.get(f"{device['href']}/events"))["events"]
    assert (events[0]["state"], events[0]["body"]) == ("failed", "[files] Ignition error: no space")
    assert events[1]["type"] == "instance.phone_home"
