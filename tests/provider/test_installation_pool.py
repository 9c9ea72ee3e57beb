"""What installations of a pool have in common: the state has it once, and whoever needs it finds it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from metal_ipi.provider.alike import differences
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.installation import Installation, InstallationPool, Pools
from metal_ipi.provider.installation.pool import identity, whole
from metal_ipi.provider.resource import Changes, Context
from metal_ipi.provider.status import NoLog, Status
from metal_ipi.provider.values import UNKNOWN
from tests.provider.fake_machine import node_of
from tests.provider.installation_site import NEW, OLD, PACE, Site

CONTEXT = Context(urn="urn", settings=Settings(), status=Status(NoLog(), "urn"))
ALIKE = ("members", "credentials", "chain")


def pool_of(inputs: dict[str, Any], name: str = "workers") -> dict[str, Any]:
    """The pool of an installation."""
    shared = {key: inputs[key] for key in (*ALIKE, "cluster", "script")}
    return {**shared, "name": name, "kernel": inputs["live"]["kernel"], "initramfs": inputs["live"]["initramfs"]}


def own_of(inputs: dict[str, Any], pool: dict[str, Any]) -> dict[str, Any]:
    """What the same installation says by itself."""
    own = {key: value for key, value in inputs.items() if key not in (*ALIKE, "script")}
    live = {"arguments": inputs["live"]["arguments"]}
    return {**own, "live": live, "common": identity(pool)}


async def test_an_installation_is_the_same_with_what_its_pool_has(site: Site) -> None:
    machine = await site.machine("worker-0")
    inputs = site.inputs(machine)
    pool = pool_of(inputs)
    own = own_of(inputs, pool)
    assert whole(own, pool) == inputs
    other = f"{inputs['script']}# another one\n"
    told = {**own, "derived": {"script": differences(inputs["script"], other)}}
    assert whole(told, pool)["script"] == other
    assert whole({**own, "derived": {"script": UNKNOWN}}, pool)["script"] is UNKNOWN


def begun(site: Site) -> InstallationPool:
    """The plug-in of another update."""
    pools = Pools()
    site.item = Installation(PACE, site.opener, pools=pools)
    return InstallationPool(pools)


async def test_machines_are_installed_and_installed_again_with_it(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    inputs = site.inputs(machine)
    pool = pool_of(inputs)
    own = own_of(inputs, pool)
    item = begun(site)
    assert item.check(pool) == [] and site.item.check(own) == []
    assert (await item.create(CONTEXT, pool)).id == own["common"]
    old = {**inputs, **site.states["worker-0"]}  # of a version that knew of no pools
    assert site.item.diff(CONTEXT, {**old, "generation": NEW}, own) == Changes()
    found = await site.item.update(site.context("worker-0"), "id", old, own)
    assert found["generation"] == NEW and f"cordon {node_of('worker-0')}" in site.log


async def test_what_is_not_told_is_an_error_and_says_what_to_do(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    inputs = site.inputs(machine)
    own = own_of(inputs, pool_of(inputs))
    with pytest.raises(InvalidInputs, match="has in common with others of workers is not known"):
        await site.item.create(site.context("worker-0"), own)
    item = begun(site)
    item.check({**pool_of(inputs), "cluster": UNKNOWN})
    with pytest.raises(InvalidInputs, match="not known in this update"):
        await site.item.update(site.context("worker-0"), "id", {**own, **site.states["worker-0"]}, own)
    assert site.log == []


@pytest.mark.parametrize("beside", [False, True])
async def test_a_worker_that_goes_is_drained_though_its_pool_goes_with_it(site: Site, beside: bool) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    inputs = site.inputs(machine)
    pool = pool_of(inputs)
    begun(site).check(pool_of(inputs, "control-plane-installation") if beside else pool)
    context = replace(site.context("worker-0"), given_up=True)
    await site.item.delete(context, "id", {**own_of(inputs, pool), **site.states["worker-0"]})
    assert site.log == [f"cordon {node_of('worker-0')}", f"remove {node_of('worker-0')}"]


async def test_a_destroy_and_a_refresh_need_no_pool(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    inputs = site.inputs(machine)
    own = {**own_of(inputs, pool_of(inputs)), **site.states["worker-0"]}
    assert await site.item.read(site.context("worker-0"), "id", own) == {}
    await site.item.delete(site.context("worker-0"), "id", own)
    assert site.log == [] and node_of("worker-0") in site.nodes.nodes


async def test_an_installation_alone_says_all_by_itself(site: Site) -> None:
    machine = await site.machine("worker-0")
    inputs = site.inputs(machine)
    own = own_of(inputs, pool_of(inputs))
    alone = {key: value for key, value in own.items() if key != "common"}
    assert {each.path for each in site.item.check(alone)} == {
        "script", "chain", "members", "live.kernel", "live.initramfs",
    }  # fmt: skip


def test_another_name_is_another_pool() -> None:
    pool = {"cluster": "a.test", "name": "workers", "members": ["a"]}
    item = InstallationPool()
    assert item.diff(CONTEXT, pool, {**pool, "name": "others"}).replaces == {"name"}
    changed = item.diff(CONTEXT, pool, {**pool, "members": ["b"]})
    assert changed.changes == {"members": "update"} and not changed.replaces
    assert asyncio.run(item.update(CONTEXT, "id", pool, pool)) == {}
