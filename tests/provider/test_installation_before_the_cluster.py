"""Machines that are installed again before there is a cluster: nothing is lost with them, so nobody is asked."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from provider.errors import InvalidInputs
from provider.installation import Installation
from tests.provider.fake_machine import FakeMachine
from tests.provider.installation_world import NEW, OLD, PACE, Run, World

_CONTROL_PLANE: dict[str, Any] = {"role": "control-plane", "pool": "control-plane", "disposable": True}


async def _installed(it: World, count: int = 3) -> list[FakeMachine]:
    return [await it.machine(f"control-plane-{number}", installed=OLD) for number in range(count)]


@pytest.mark.parametrize("joined", [True, False])
def test_the_control_plane_is_installed_again_at_once_without_consent(run: Run, joined: bool) -> None:
    async def test(it: World) -> None:
        machines = await _installed(it)
        for machine in machines:
            machine.joined = joined
        await asyncio.gather(*(it.up(machine, **_CONTROL_PLANE) for machine in machines))
        assert [it.states[machine.name]["generation"] for machine in machines] == [NEW] * 3
        assert not [entry for entry in it.log if entry.startswith(("cordon", "evict", "drain"))]
        # All at once: etcd has no quorum yet that could be lost.
        assert {entry.split()[0] for entry in it.log[:3]} == {"kexec"}
        # As in a first installation, nobody waits here for what their own bootstrap machine has to serve first.
        assert it.uploaded() == []

    run(test)


def test_a_single_node_is_installed_again(run: Run) -> None:
    async def test(it: World) -> None:
        (machine,) = await _installed(it, 1)
        assert (await it.up(machine, **_CONTROL_PLANE))["generation"] == NEW

    run(test)


def test_keep_is_for_clusters(run: Run) -> None:
    async def test(it: World) -> None:
        machine, *_ = await _installed(it)
        inputs = it.inputs(machine, **_CONTROL_PLANE, keep=True)
        old = {**inputs, **it.states[machine.name]}
        found = it.item.diff(it.context(machine.name), old, inputs)
        assert found.changes["generation"] == "update" and found.warning == ""
        assert (await it.up(machine, **_CONTROL_PLANE, keep=True))["generation"] == NEW

    run(test)


def test_a_preview_shows_it(run: Run) -> None:
    async def test(it: World) -> None:
        machine, *_ = await _installed(it)
        inputs = it.inputs(machine, **_CONTROL_PLANE)
        old = {**inputs, **it.states[machine.name]}
        assert it.item.preview(it.context(machine.name), old, inputs)["generation"] == NEW
        with pytest.raises(InvalidInputs, match="which is done with consent only"):
            it.item.preview(it.context(machine.name), old, {**inputs, "disposable": False})

    run(test)


def test_a_silent_machine_that_the_api_knows_is_installed_again(run: Run) -> None:
    """Its node is the one of an attempt to form the cluster; nothing of that is kept."""

    async def test(it: World) -> None:
        machine, *_ = await _installed(it)
        await machine.start("silent")
        it.item = Installation(replace(PACE, patience=60.0), it.opener)
        begun = time.monotonic()
        state = await it.up(machine, **_CONTROL_PLANE)
        assert (state["generation"], state["via"]) == (NEW, "network boot")
        assert time.monotonic() - begun < 30, "nobody waits for what is to go"

    run(test)


def test_a_live_system_of_other_assets_is_ended(run: Run) -> None:
    """A single node forms its cluster in there: whatever it waits for, it is not for these assets."""

    async def test(it: World) -> None:
        machine = await it.machine("control-plane-0")
        await machine.start("live")
        machine.statuses = [{"state": "installing", "step": "waiting for bootkube", "generation": OLD}]
        it.states[machine.name] = {"generation": "", "installedAt": None, "device": None, "via": None}
        task = asyncio.ensure_future(it.up(machine, **_CONTROL_PLANE))
        for _ in range(100):
            await asyncio.sleep(0.05)
            if "kexec control-plane-0" in it.log:
                break
        machine.statuses = [{"state": "installing"}]
        assert (await task)["generation"] == NEW

    run(test)


def test_a_formed_cluster_asks_as_ever(run: Run) -> None:
    async def test(it: World) -> None:
        machine, *_ = await _installed(it)
        with pytest.raises(InvalidInputs, match="which is done with consent only"):
            await it.up(machine, **{**_CONTROL_PLANE, "disposable": False})
        assert it.log == []

    run(test)
