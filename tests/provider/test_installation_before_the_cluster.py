"""Machines that are installed again before there is a cluster: nothing is lost with them, so nobody is asked."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.installation import Installation
from tests.provider.fake_machine import FakeMachine
from tests.provider.harness import until
from tests.provider.installation_site import NEW, OLD, PACE, Site

_CONTROL_PLANE: dict[str, Any] = {"role": "control-plane", "pool": "control-plane", "disposable": True}


async def _installed(site: Site, count: int = 3) -> list[FakeMachine]:
    return [await site.machine(f"control-plane-{number}", installed=OLD) for number in range(count)]


@pytest.mark.parametrize("joined", [True, False])
async def test_the_control_plane_is_installed_again_at_once_without_consent(site: Site, joined: bool) -> None:
    machines = await _installed(site)
    for machine in machines:
        machine.joined = joined
    await asyncio.gather(*(site.up(machine, **_CONTROL_PLANE) for machine in machines))
    assert [site.states[machine.name]["generation"] for machine in machines] == [NEW] * 3
    assert not [entry for entry in site.log if entry.startswith(("cordon", "evict", "drain"))]
    # All at once: etcd has no quorum yet that could be lost.
    assert {entry.split()[0] for entry in site.log[:3]} == {"kexec"}
    # As in a first installation, nobody waits here for what their own bootstrap machine has to serve first.
    assert site.uploaded() == []


async def test_a_single_node_is_installed_again(site: Site) -> None:
    (machine,) = await _installed(site, 1)
    assert (await site.up(machine, **_CONTROL_PLANE))["generation"] == NEW


async def test_keep_is_for_clusters(site: Site) -> None:
    machine, *_ = await _installed(site)
    inputs = site.inputs(machine, **_CONTROL_PLANE, keep=True)
    old = {**inputs, **site.states[machine.name]}
    found = site.item.diff(site.context(machine.name), old, inputs)
    assert found.changes["generation"] == "update" and found.warning == ""
    assert (await site.up(machine, **_CONTROL_PLANE, keep=True))["generation"] == NEW


async def test_a_preview_shows_it(site: Site) -> None:
    machine, *_ = await _installed(site)
    inputs = site.inputs(machine, **_CONTROL_PLANE)
    old = {**inputs, **site.states[machine.name]}
    assert site.item.preview(site.context(machine.name), old, inputs)["generation"] == NEW
    with pytest.raises(InvalidInputs, match="which is done with consent only"):
        site.item.preview(site.context(machine.name), old, {**inputs, "disposable": False})


async def test_a_silent_machine_that_the_api_knows_is_installed_again(site: Site) -> None:
    """Its node is the one of an attempt to form the cluster; nothing of that is kept."""
    machine, *_ = await _installed(site)
    await machine.start("silent")
    site.item = Installation(replace(PACE, patience=60.0), site.opener)
    begun = time.monotonic()
    state = await site.up(machine, **_CONTROL_PLANE)
    assert (state["generation"], state["via"]) == (NEW, "network boot")
    assert time.monotonic() - begun < 30, "nobody waits for what is to go"


async def test_a_live_system_of_other_assets_is_ended(site: Site) -> None:
    """A single node forms its cluster in there: whatever it waits for, it is not for these assets."""
    machine = await site.machine("control-plane-0")
    machine.statuses = [{"state": "installing", "step": "waiting for bootkube", "generation": OLD}] * 1000
    await machine.start("live")
    site.states[machine.name] = {"generation": "", "installedAt": None, "device": None, "via": None}
    task = asyncio.ensure_future(site.up(machine, **_CONTROL_PLANE))
    await until(lambda: "kexec control-plane-0" in site.log)
    machine.statuses = [{"state": "installing"}]
    assert (await task)["generation"] == NEW


async def test_a_formed_cluster_asks_as_ever(site: Site) -> None:
    machine, *_ = await _installed(site)
    with pytest.raises(InvalidInputs, match="which is done with consent only"):
        await site.up(machine, **{**_CONTROL_PLANE, "disposable": False})
    assert site.log == []
