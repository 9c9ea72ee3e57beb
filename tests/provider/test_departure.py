"""Workers that an update takes away: drained, and their Node objects removed, before their machines go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pulumi.provider.experimental import provider as sdk

from metal_ipi.provider.errors import InvalidInputs, ProviderError
from metal_ipi.provider.installation import Installation
from metal_ipi.provider.resource import Context, Values
from metal_ipi.provider.values import to_wire_map
from tests.provider.fake_machine import FakeMachine, node_of
from tests.provider.harness import Harness
from tests.provider.installation_site import OLD, Site

NODE = node_of("worker-0")


async def goes(site: Site, machine: FakeMachine, *, given_up: bool = True, **more: Any) -> None:
    """Deletes its Installation."""
    context = replace(site.context(machine.name), given_up=given_up)
    await site.item.delete(context, "id", {**site.inputs(machine, **more), **site.states[machine.name]})


async def test_a_worker_that_is_given_up_is_drained_and_its_node_removed(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    other = await site.machine("worker-1", installed=OLD)
    site.nodes.pod("web", NODE)
    site.nodes.pod("agent", NODE, owner="DaemonSet")
    await goes(site, machine)
    assert site.log == [f"cordon {NODE}", "evict web", f"remove {NODE}"]
    assert list(site.nodes.nodes) == [node_of("worker-1")] and site.nodes.config_maps == {}
    assert machine.running == "disk"  # its platform switches it off
    await goes(site, machine)  # again, after a kill
    assert site.log[-1] == f"remove {NODE}" and other.running == "disk"


@pytest.mark.parametrize(
    ("role", "given_up", "installed"),
    [("worker", False, True), ("control-plane", True, True), ("worker", True, False)],
)
async def test_others_are_left_alone(site: Site, role: str, given_up: bool, installed: bool) -> None:
    """In a destroy, of the control plane, and one that was never installed."""
    machine = await site.machine("worker-0", installed=OLD)
    if not installed:
        site.states["worker-0"]["installedAt"] = None
    await goes(site, machine, given_up=given_up, role=role)
    assert site.log == [] and NODE in site.nodes.nodes


async def test_a_worker_that_cannot_be_drained_does_not_go(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    site.nodes.pod("web", NODE)
    site.nodes.budgets["web"] = "no"
    with pytest.raises(ProviderError, match="could not be drained within 10 s: shop/web"):
        await goes(site, machine)
    assert site.log == [f"cordon {NODE}"] and NODE in site.nodes.nodes
    gone = site.silent_cluster()
    with pytest.raises(ProviderError, match=r"worker worker-0 is not removed, because .* state delete with its URN"):
        await goes(site, machine, **gone)
    machine.joined = False  # no cluster has ever seen it
    await goes(site, machine, **gone)


async def test_pods_of_a_silent_node_are_not_started_elsewhere_while_they_may_run(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    site.nodes.set_ready(NODE, ready=False)
    site.nodes.pod("web", NODE)
    await goes(site, machine)
    assert site.log == [f"cordon {NODE}"]
    assert any(f"oc delete node {NODE}" in message for message in site.told.messages)
    await machine.start("off")
    await goes(site, machine)
    assert site.log[-1] == f"remove {NODE}"


async def test_before_there_is_a_cluster_nobody_misses_a_worker(site: Site) -> None:
    """It waits for its configuration in its initramfs, where no SSH answers, and there is no API to ask."""
    machine = await site.machine("worker-0", installed=OLD)
    await machine.start("off")
    gone = site.silent_cluster()
    # The state says so for good; what counts is what this update says, of any machine of the cluster.
    with pytest.raises(ProviderError, match="worker worker-0 is not removed"):
        await goes(site, machine, **gone, disposable=True)
    other = await site.machine("worker-1")
    assert site.item.check(site.inputs(other, disposable=True)) == []
    await goes(site, machine, **gone)


async def test_a_machine_that_nobody_can_be_asked_about_leaves_all_the_same(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server was taken out of `platform.servers`, or its device does not exist any more."""
    machine = await site.machine("worker-0", installed=OLD)
    site.nodes.set_ready(NODE, ready=False)

    async def nobody(machine_id: str) -> str:
        raise InvalidInputs("server worker-0 is not in `bmcs` of the metal-ipi provider; known are none")

    monkeypatch.setattr(site.driver, "power_state", nobody)
    await goes(site, machine)
    assert NODE in site.nodes.nodes
    assert any(f"oc delete node {NODE}" in message for message in site.told.messages)


async def test_an_api_that_cannot_cordon(site: Site) -> None:
    machine = await site.machine("worker-0", installed=OLD)
    respond = site.cluster.respond
    site.cluster.respond = lambda method, path, body: None if method == "PATCH" else respond(method, path, body)
    await goes(site, machine)
    assert any(
        f"{NODE} is not drained before it is removed: the cluster at" in message for message in site.told.messages
    )


async def test_who_is_given_up() -> None:
    """The plug-in of an update knows what the program declares; that of a destroy is told of nothing."""
    urn = "urn:pulumi:test::metal-ipi::metal-ipi:index:Installation::worker-"
    found: list[bool] = []

    class Watched(Installation):
        async def delete(self, context: Context, resource_id: str, old: Values) -> None:
            found.append(context.given_up)

    provider = Harness().provider
    provider._types[Watched.token] = Watched()  # pyright: ignore[reportPrivateUsage]

    async def delete(number: int) -> None:
        await provider.delete(sdk.DeleteRequest(f"{urn}{number}", "id", to_wire_map({}), 0))

    await delete(0)
    await provider.check(sdk.CheckRequest(f"{urn}1", {}, to_wire_map({}), b""))
    await delete(0)
    await delete(1)  # it was made anew before
    assert found == [False, True, False]
