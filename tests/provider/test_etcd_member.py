"""The etcd member of a control plane machine that is installed again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from metal_ipi.provider.errors import ProviderError, RemoteError
from metal_ipi.provider.installation.etcd_member import Member, healthy_endpoints, parse
from tests.provider.fake_etcd import FakeEtcd
from tests.provider.fake_machine import FakeMachine, node_of
from tests.provider.harness import kills, until
from tests.provider.installation_site import CONTROL_PLANE, NEW, Site

FIRST = node_of("control-plane-0")


async def control_plane(site: Site, count: int = 3) -> tuple[list[FakeMachine], FakeEtcd]:
    machines = await site.control_plane(count)
    return machines, FakeEtcd(world=site, machines=machines)


def ours(log: list[str], *names: str) -> list[str]:
    return [entry for entry in log if entry.startswith(names)]


async def test_the_member_is_taken_out_and_a_new_one_comes(site: Site) -> None:
    machines, etcd = await control_plane(site)
    before = {member.name: member.id for member in etcd.members}
    await site.up(machines[0], **etcd.inputs(machines[0]))
    steps = ours(site.log, "cordon", "kexec", "install", "member", "remove", "reboot", "register", "check")
    assert steps == [
        f"cordon {FIRST}",
        "kexec control-plane-0",
        "install control-plane-0",
        f"member remove {FIRST}",
        f"remove {FIRST}",
        "reboot control-plane-0",
        f"register {FIRST}",
        "check control-plane-0",
        f"member add {FIRST}",
    ]
    assert {member.name for member in etcd.members} == set(before)
    changed = {member.name for member in etcd.members if before[member.name] != member.id}
    assert changed == {FIRST} and all(etcd.healthy(member) for member in etcd.members)
    assert len(etcd.secrets) == 6 and not any(name.endswith(FIRST) for name in etcd.secrets)


@pytest.mark.parametrize("count", [3, *(pytest.param(count, marks=pytest.mark.nightly) for count in (4, 5))])
async def test_all_of_them_one_after_the_other(site: Site, count: int) -> None:
    machines, etcd = await control_plane(site, count)
    await asyncio.gather(*(site.up(machine, **etcd.inputs(machine), maxUnavailable=3) for machine in machines))
    assert [machine.disk for machine in machines] == [NEW] * count and len(etcd.members) == count
    assert [machine.installs for machine in machines] == [1] * count
    assert ours(site.log, "member") == [
        f"member {verb} {node_of(machine.name)}" for machine in machines for verb in ("remove", "add")
    ]


async def test_nothing_is_taken_out_while_another_member_ails(site: Site) -> None:
    machines, etcd = await control_plane(site)
    install = site.driver.boot_disk
    waiting = asyncio.ensure_future(site.up(machines[0], **etcd.inputs(machines[0]), timeoutSeconds=30))
    await until(lambda: "kexec control-plane-0" in site.log)
    etcd.data[machines[1].name] = ("another disk", 0)  # its etcd is down; its machine and its node are not
    with pytest.raises(ProviderError) as caught:
        await waiting
    assert f"could not be removed within 30 s: other members are not healthy: {node_of('control-plane-1')}." in str(
        caught.value
    )
    assert len(etcd.members) == 3 and FIRST in site.nodes.nodes and machines[0].running == "live"
    # It heals, and the same command goes on.
    etcd.data[machines[1].name] = (machines[1].chassis, etcd.members[1].id)
    site.another_run()
    await site.up(machines[0], **etcd.inputs(machines[0]))
    assert machines[0].installs == 1 and len(etcd.members) == 3 and site.driver.boot_disk == install


async def test_a_member_that_answers_is_not_taken_out(site: Site) -> None:
    machines, etcd = await control_plane(site)
    healthy = etcd.healthy
    etcd.healthy = lambda member: True  # type: ignore[method-assign]
    with pytest.raises(ProviderError, match=rf"member \w+ answers, although {FIRST} runs no etcd"):
        await site.up(machines[0], **etcd.inputs(machines[0]), timeoutSeconds=30)
    assert len(etcd.members) == 3
    etcd.healthy = healthy  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda etcd: etcd.members.pop(1), "besides it etcd has control-plane-2"),
        (lambda etcd: setattr(etcd.members[0], "host", "198.51.100.9"), r"not clear which member .* was: .*198\.51"),
        (lambda etcd: setattr(etcd.members[0], "name", "stranger"), "not clear which member .* was: .* stranger"),
    ],
)
async def test_a_list_that_is_not_as_expected(site: Site, change: Any, told: str) -> None:
    machines, etcd = await control_plane(site)
    waiting = asyncio.ensure_future(site.up(machines[0], **etcd.inputs(machines[0]), timeoutSeconds=30))
    await until(lambda: "kexec control-plane-0" in site.log)
    others = [each.name for each in etcd.members[1:]]
    etcd.healthy = lambda member: member.name in others  # type: ignore[method-assign]
    change(etcd)
    count = len(etcd.members)
    with pytest.raises(ProviderError, match=told):
        await waiting
    assert len(etcd.members) == count and ours(site.log, "member") == []


async def test_by_hand_where_pods_take_no_commands(site: Site) -> None:
    machines, etcd = await control_plane(site)
    stale = etcd.members[0]
    etcd.broken = "no"
    waiting = asyncio.ensure_future(site.up(machines[0], **etcd.inputs(machines[0])))
    await until(lambda: any("by hand" in message for message in site.told.messages))
    (told,) = (message for message in site.told.messages if "by hand" in message)
    pod = f"etcd-{node_of('control-plane-1')}"
    assert told.splitlines()[1:] == [
        f"  oc rsh --namespace=openshift-etcd --container=etcdctl {pod} etcdctl member list -w table",
        f"  oc rsh --namespace=openshift-etcd --container=etcdctl {pod} etcdctl member remove {stale.id:x}",
        f"  oc delete secret --namespace=openshift-etcd --ignore-not-found etcd-peer-{FIRST} etcd-serving-{FIRST} "
        f"etcd-serving-metrics-{FIRST}",
    ]
    assert "HTTP 500" in told and not waiting.done() and machines[0].running == "live"
    etcd.members.remove(stale)
    await waiting
    assert machines[0].disk == NEW and len(etcd.members) == 3


@kills
async def test_killed_after_the_member_went(site: Site) -> None:
    machines, etcd = await control_plane(site)
    await site.killed(machines[0], lambda: f"member remove {FIRST}" in site.log, **etcd.inputs(machines[0]))
    await site.up(machines[0], **etcd.inputs(machines[0]))
    assert site.log.count(f"member remove {FIRST}") == site.log.count(f"member add {FIRST}") == 1
    assert machines[0].installs == 1 and not any(name.endswith(FIRST) for name in etcd.secrets)


async def test_a_cluster_without_an_etcd_operator(site: Site) -> None:
    machines = await site.control_plane()
    await site.up(machines[0], **CONTROL_PLANE, consent=True)
    text = f"this cluster has no etcd operator: no member of etcd is removed for {FIRST}"
    assert site.told.messages.count(text) == 1 and site.log.count(f"remove {FIRST}") == 1


def test_what_etcdctl_prints() -> None:
    # etcdctl 3.5 and 3.6: ids are decimal numbers; a member that has not started has neither name nor client URLs.
    printed = (
        '{"header":{"cluster_id":1},"members":[{"ID":8033446391283427981,"name":"a","peerURLs":["https://[fd00::1]:2380"],'
        '"clientURLs":["https://[fd00::1]:2379"]},{"ID":17,"peerURLs":["https://192.0.2.2:2380"],"isLearner":true}]}'
    )
    assert parse(printed) == [
        Member(id="6f7c88ee0a97aa8d", name="a", hosts=frozenset({"fd00::1"}), clients=("https://[fd00::1]:2379",),
               learner=False),
        Member(id="11", name="", hosts=frozenset({"192.0.2.2"}), clients=(), learner=True),
    ]  # fmt: skip
    for text in ("", "{}", "[]", '{"members": [{}]}', '{"members": null}'):
        with pytest.raises(RemoteError, match="cannot be read"):
            parse(text)
    health = '[{"endpoint":"https://a:2379","health":true,"took":"2ms"},{"endpoint":"https://b:2379","health":false}]'
    assert healthy_endpoints(health) == {"https://a:2379"}
    for text in ("", '[{"endpoint": "x"}]'):
        with pytest.raises(RemoteError, match="cannot be read"):
            healthy_endpoints(text)
