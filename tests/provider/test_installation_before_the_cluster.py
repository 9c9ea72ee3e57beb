"""Machines that are installed again before there is a cluster: nothing is lost with them, so nobody is asked."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.installation import Installation
from tests.provider.harness import until
from tests.provider.installation_site import CONTROL_PLANE, NEW, OLD, PACE, UNFINISHED, Site

_DISPOSABLE: dict[str, Any] = {**CONTROL_PLANE, "disposable": True}


@pytest.mark.parametrize("count", [3, 1], ids=["three", "a single node"])
@pytest.mark.parametrize("joined", [True, False])
async def test_the_control_plane_is_installed_again_at_once_without_consent(
    site: Site, joined: bool, count: int
) -> None:
    machines = await site.control_plane(count)
    for machine in machines:
        machine.joined = joined
    await asyncio.gather(*(site.up(machine, **_DISPOSABLE) for machine in machines))
    assert [site.states[machine.name]["generation"] for machine in machines] == [NEW] * count
    assert not [entry for entry in site.log if entry.startswith(("cordon", "evict", "drain"))]
    # All at once: etcd has no quorum yet that could be lost.
    assert {entry.split()[0] for entry in site.log[:count]} == {"kexec"}
    # As in a first installation, nobody waits here for what their own bootstrap machine has to serve first.
    assert site.uploaded() == []


async def test_keep_is_for_clusters(site: Site) -> None:
    (machine,) = await site.control_plane(1)
    inputs = site.inputs(machine, **_DISPOSABLE, keep=True)
    old = {**inputs, **site.states[machine.name]}
    found = site.item.diff(site.context(machine.name), old, inputs)
    assert found.changes["generation"] == "update" and found.warning == ""
    assert (await site.up(machine, **_DISPOSABLE, keep=True))["generation"] == NEW


async def test_a_preview_shows_it(site: Site) -> None:
    machine, *_ = await site.control_plane()
    inputs = site.inputs(machine, **_DISPOSABLE)
    old = {**inputs, **site.states[machine.name]}
    assert site.item.preview(site.context(machine.name), old, inputs)["generation"] == NEW
    with pytest.raises(InvalidInputs, match="which needs your consent"):
        site.item.preview(site.context(machine.name), old, {**inputs, "disposable": False})


async def test_a_silent_machine_that_the_api_knows_is_installed_again(site: Site) -> None:
    """Its node is the one of an attempt to form the cluster; nothing of that is kept."""
    (machine,) = await site.control_plane(1)
    await machine.start("silent")
    site.item = Installation(replace(PACE, patience=60.0), site.opener)
    begun = time.monotonic()
    state = await site.up(machine, **_DISPOSABLE)
    assert (state["generation"], state["via"]) == (NEW, "network boot")
    assert time.monotonic() - begun < 30, "nobody waits for what is to go"


async def test_a_live_system_of_other_assets_is_ended(site: Site) -> None:
    """A single node forms its cluster in there: whatever it waits for, it is not for these assets."""
    machine = await site.machine("control-plane-0")
    machine.statuses = [{"state": "installing", "step": "waiting for bootkube", "generation": OLD}] * 1000
    await machine.start("live")
    site.states[machine.name] = dict(UNFINISHED)
    task = asyncio.ensure_future(site.up(machine, **_DISPOSABLE))
    await until(lambda: "kexec control-plane-0" in site.log)
    machine.statuses = [{"state": "installing"}]
    assert (await task)["generation"] == NEW
