"""Workers in stacks of their own: which are where, what the stacks tell each other, and what goes wrong."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from metal_ipi.components.install.previous_runs import READ_OUTPUTS
from metal_ipi.stacks.pools.cluster import ClusterMissing
from metal_ipi.stacks.pools.splitting import Split, seen, share, split
from metal_ipi.stacks.program import main
from metal_ipi.stacks.settings import Settings, SettingsError, parse
from tests import golden
from tests.mocks import Recorder, config_text, is_secret, plain, run
from tests.stacks.answers import ANSWERS, CALLS, declared, left_behind, problems, settings, stack_file, tells
from tests.stacks.rack import rack

_REFERENCE = "pulumi:pulumi:StackReference"
_DEVICE = "equinix-metal:index/device:Device"
_ID = "52000fb2-ee46-4673-93a8-de2c2bdba33b"
_GPU: dict[str, Any] = {"name": "gpu", "first": 100, "count": 2}


def _parsed(stack: str = "da11", **changes: Any) -> Settings:
    return parse(settings(stack, **changes), stack)


def _sizes(found: Split) -> dict[str, int]:
    return {"": found.cluster.workers.count} | {name: len(own.machines) for name, own in found.pools.items()}


# --- which workers are where -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "there", "sizes"),
    [
        ({"count": 100}, [], {"": 100}),
        ({"count": 101}, [], {"": 100, "workers-100": 1}),
        ({"count": 230}, [], {"": 100, "workers-100": 100, "workers-200": 30}),
        ({"count": 230}, [99], {"": 100, "workers-100": 100, "workers-200": 30}),
        ({"count": 230}, [150], {"": 230}),  # a stack of before keeps what it has
        ({"count": 230, "perStack": 0}, [], {"": 230}),
        ({"count": 7, "perStack": 3}, [], {"": 3, "workers-3": 3, "workers-6": 1}),
        ({"count": 3, "pools": [_GPU]}, [], {"": 3, "gpu": 2}),
        ({"count": 0, "pools": [_GPU]}, [], {"": 0, "gpu": 2}),
        ({"count": 7, "perStack": 5, "pools": [_GPU]}, [], {"": 5, "gpu": 2, "workers-5": 2}),
    ],
)
def test_workers_are_split(workers: dict[str, Any], there: list[int], sizes: dict[str, int]) -> None:
    whole = _parsed(workers=workers)
    found = split(whole, "da11", frozenset(f"da11-worker-{number}" for number in there))
    assert _sizes(found) == sizes
    every = [*found.cluster.machines, *(machine for own in found.pools.values() for machine in own.machines)]
    assert sorted(every) == sorted(whole.machines), "each is in one stack"


def test_a_pool_has_what_all_workers_have_and_its_own_over_it() -> None:
    pool = {**_GPU, "labels": {"example.com/a": "pool"}, "kernelArguments": ["hugepages=4"]}
    pool["taints"] = [{"key": "example.com/t", "value": "pool", "effect": "NoSchedule"}]
    every = {"labels": {"example.com/a": "all", "example.com/b": "all"}, "kernelArguments": ["quiet"], "pools": [pool]}
    every["taints"] = [{"key": "example.com/t", "value": "all", "effect": each} for each in ("NoSchedule", "NoExecute")]
    own = split(_parsed(workers={"count": 1, **every}), "da11").pools["gpu"]
    assert own.labels("worker-100") == {"example.com/a": "pool", "example.com/b": "all"}
    assert [(taint.effect, taint.value) for taint in own.taints("worker-100")] == [
        ("NoExecute", "all"),
        ("NoSchedule", "pool"),
    ]
    assert own.kernel_arguments("worker-100")[-2:] == ("quiet", "hugepages=4")


@pytest.mark.parametrize(
    ("workers", "path"),
    [({"count": 230, "perStack": 50}, "perStack"), ({"count": 1, "pools": [{**_GPU, "first": 50}]}, "pools")],
)
def test_no_machine_is_taken_from_the_stack_that_has_it(workers: dict[str, Any], path: str) -> None:
    whole = _parsed(workers=workers)
    with pytest.raises(SettingsError) as caught:
        split(whole, "da11", frozenset({"da11-worker-50", "da11-worker-51", "da11-worker-0"}))
    assert tells(caught.value.problems, f"workers.{path}", "worker-50 to worker-51 (2) are in the stack", "perStack")


def test_pools_of_listed_servers_are_those_of_their_numbers() -> None:
    found = split(parse(config_text(rack(workers={"pools": [{**_GPU, "first": 1, "count": 5}]})), "rack"), "rack")
    assert found.pools["gpu"].machines == ("worker-4",)
    assert [server.name for server in found.pools["gpu"].platform.servers] == ["worker-4"]  # pyright: ignore
    assert "worker-4" not in found.cluster.machines and found.cluster.workers.count == 1
    none, lent = (
        problems(config_text(rack(workers={"pools": [{**_GPU, "first": first, "count": 1}]}))) for first in (9, 0)
    )
    assert tells(none, "workers.pools[0].first", "platform.servers lists no server of worker-9 to worker-9")
    assert tells(lent, "workers.pools[0].first", "worker-0, whose server is the bootstrap machine first")


def test_reserved_servers_go_with_their_workers() -> None:
    ids = [f"52000fb2-ee46-4673-93a8-de2c2bdba3{number:02d}" for number in range(5)]
    platform = {**stack_file("da11")["platform"], "reservations": {"worker": ids[:3]}}
    platform["pools"] = {"gpu": {"plan": "g2.large.x86", "reservations": ids[3:]}}
    whole = _parsed(platform=platform, workers={"count": 3, "perStack": 2, "pools": [_GPU]})
    found = split(whole, "da11")
    held = {name: list(own.platform.reservations.worker) for name, own in found.pools.items()}  # pyright: ignore
    assert held == {"gpu": ids[3:], "workers-2": ids[2:3]}
    assert found.pools["gpu"].platform.plans("x86_64")["worker"] == "g2.large.x86"  # pyright: ignore


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "path", "why"),
    [
        ({"count": 101, "pools": [_GPU]}, "pools[0].first", "worker-100 belongs to workers.count already"),
        ({"count": 1, "pools": [_GPU, {**_GPU, "name": "b"}]}, "pools[1].first", "belongs to workers.pools[0] already"),
        ({"count": 1, "pools": [_GPU, {**_GPU, "first": 200}]}, "pools[1].name", "is the same"),
        ({"count": 1, "pools": [{**_GPU, "name": "workers-100"}]}, "pools[0].name", "that workers.perStack makes"),
    ],
)
def test_pools_that_cannot_be(workers: dict[str, Any], path: str, why: str) -> None:
    assert tells(problems(settings(workers=workers)), f"workers.{path}", why)


@pytest.mark.parametrize(
    ("platform", "path"),
    [
        (
            {"facilities": [], "metro": "da", "networks": [{"name": "storage", "roles": ["worker"]}]},
            "platform.networks",
        ),
        ({"pools": {"cpu": {}}}, "platform.pools.cpu"),
        ({"pools": {"gpu": {"plan": "c3.large.arm64"}}}, "platform.pools.gpu.plan"),
        ({"pools": {"gpu": {"reservations": [_ID]}}}, "platform.pools.gpu.reservations"),
        (
            {"pools": {"gpu": {"reservations": ["next-available"]}}, "reservations": {"worker": [_ID]}},
            "platform.pools.gpu.reservations",
        ),
        (
            {"pools": {"gpu": {"reservations": [_ID, f"1{_ID[1:]}"]}}, "reservations": {"worker": [_ID]}},
            "platform.pools.gpu.reservations[0]",
        ),
    ],
)
def test_platforms_that_cannot_have_a_pool(platform: dict[str, Any], path: str) -> None:
    tree = {**stack_file("da11")["platform"], **platform}
    tree = {name: value for name, value in tree.items() if value != []}
    found = problems(settings(platform=tree, workers={"count": 1, "pools": [_GPU]}))
    assert [problem.path for problem in found] == [f"metal-ipi:{path}"]


def test_all_workers_of_the_spot_market_may_be_in_pools() -> None:
    platform = {**stack_file("lab")["platform"], "spot": {"maxPrice": 1.5}}
    assert split(_parsed("lab", platform=platform, workers={"count": 0, "pools": [_GPU]}), "lab").pools["gpu"].machines


def test_networks_of_metal_keep_a_large_facility_in_one_stack() -> None:
    networks = [{"name": "storage", "roles": ["worker"]}]
    whole = _parsed("lab", platform={**stack_file("lab")["platform"], "networks": networks}, workers={"count": 150})
    assert split(whole, "lab").pools == {}


def test_a_pool_that_is_not_there_is_told() -> None:
    with pytest.raises(SettingsError) as caught:
        share(_parsed(pool="cpu", workers={"count": 1, "pools": [_GPU]}), "da11-cpu", frozenset())
    assert tells(caught.value.problems, "pool", "there is: gpu")
    with pytest.raises(SettingsError) as caught:
        share(_parsed(pool="gpu", workers={"count": 1, "pools": [_GPU]}), "elsewhere", frozenset())
    assert tells(caught.value.problems, "pool", "this is 'elsewhere'", "pulumi stack init")


# --- what is declared ------------------------------------------------------------------------------------------------


@cache
def _cluster() -> Recorder:
    return declared("pooled")


def _pool(pool: str = "gpu", *, told: bool = True, preview: bool = False, **changes: Any) -> Recorder:
    """What a pool's stack declares beside the cluster's, or beside one that has told it nothing."""
    outputs = _cluster().outputs if told else {}

    def reference(args: Any) -> dict[str, Any]:
        assert args.inputs["name"].endswith("/metal-ipi/pooled"), args.inputs
        return {"outputs": outputs, "secretOutputNames": ["forPoolsSecret"]}

    values = settings("pooled", pool=pool, **changes)
    answers = {**ANSWERS, _REFERENCE: reference, READ_OUTPUTS: lambda _: {"outputs": outputs}}
    recorder = Recorder(answers, CALLS)
    run(main, recorder, values, stack=f"pooled-{pool}", preview=preview)
    return recorder


def test_the_stacks_of_a_facility() -> None:
    """Every resource of each stack."""
    lines: list[str] = []
    for stack, recorder in (("pooled", _cluster()), ("pooled-compute", _pool("compute")), ("pooled-gpu", _pool())):
        own = sorted(recorder.urn(args.name) for args in recorder.resources if args.typ != _REFERENCE)
        lines += [f"{stack} {urn}" for urn in own]
    golden.check("urns-pooled.txt", "".join(f"{line}\n" for line in lines))


def test_a_pool_is_part_of_the_cluster() -> None:
    cluster, pool = _cluster(), _pool()
    device = pool.of(_DEVICE)[0]
    tags = [plain(each) for each in plain(device.inputs)["tags"]]
    assert "metal-ipi:run=keys-id" in tags and "metal-ipi:stack=pooled-gpu" in tags
    assert plain(device.inputs)["projectSshKeyIds"] == ["platform-ssh-key-id"]
    ready, of_cluster = (each.inputs("nodes-ready")["spec"] for each in (pool, cluster))
    login = ("url", "caPem", "clientCertPem", "clientKeyPem")
    assert [ready[name] for name in login] == [of_cluster[name] for name in login]
    assert ready["names"] == [f"pooled-worker-{number}.pooled.facility.test" for number in (20, 21)]
    access = pool.inputs("machine-config-access")["spec"]
    assert access["part"] == "gpu"
    assert [node["name"].partition(".")[0] for node in access["nodes"]] == [
        f"pooled-control-plane-{number}" for number in range(3)
    ]
    addresses = [pool.inputs(f"{args.name}") for args in pool.of(_DEVICE)]
    assert len(access["networks"]) == 2 * len(addresses), "the pool's own, and nobody else's"
    records = pool.inputs("dns-pool-records")
    assert records["beside"] == "metal-ipi/pooled"
    assert len(records["records"]["*.apps.pooled.facility.test A"]["values"]) == 2
    marks = pool.inputs("node-marks")["nodes"][0]
    assert marks["labels"] == {"example.com/site": "east", "example.com/kind": "gpu"}


def _declared(recorder: Recorder) -> list[tuple[str, Any]]:
    return sorted(
        (recorder.urn(args.name), repr(plain(args.inputs))) for args in recorder.resources if args.typ != _REFERENCE
    )


def test_a_stack_declares_the_same_when_it_sees_the_same() -> None:
    """`make` leaves a pool alone of which nothing has changed, so what others have must not reach it."""
    workers = json.loads(settings("pooled")["workers"])
    (compute, gpu) = workers["pools"]
    more = {**workers, "count": 3, "pools": [{**compute, "count": 5, "taints": gpu["taints"]}, gpu]}

    def sees(**changes: Any) -> list[Any]:
        return seen(_parsed("pooled", pool="gpu", **changes), "pooled-gpu", frozenset())

    assert sees(workers=more) == sees()
    assert _declared(_pool(workers=more)) == _declared(_pool())
    for change in ({"count": 3}, {"first": 30}):
        own = {**workers, "pools": [compute, {**gpu, **change}]}
        assert sees(workers=own) != sees() and _declared(_pool(workers=own)) != _declared(_pool())


def test_what_a_pool_has_of_the_cluster_that_is_secret_stays_so() -> None:
    pool = _pool()
    assert is_secret(pool.one("identities").inputs["pathSeed"])
    assert is_secret(pool.one("nodes-ready").inputs["spec"]), "the administrator's key is in it"
    assert not is_secret(pool.of(_DEVICE)[0].inputs["projectSshKeyIds"])


def test_a_pool_of_a_cluster_that_has_not_come_to_its_end() -> None:
    with pytest.raises(ClusterMissing, match=r"make up STACK=pooled"):
        _pool(told=False)
    assert _pool(told=False, preview=True).of(_DEVICE), "a preview may come before the cluster's `up`"


def test_the_cluster_tells_of_pools_only_where_there_are_some() -> None:
    assert "forPools" in _cluster().outputs and "forPools" not in declared("lab").outputs


def test_a_cluster_of_before_that_has_the_workers_of_a_pool() -> None:
    answers = left_behind(pooled_worker_20_device=(_DEVICE, {"hostname": "pooled-worker-20"}))
    with pytest.raises(SettingsError) as caught:
        declared("pooled", answers)
    assert tells(caught.value.problems, "workers.pools", "worker-20 are in the stack of the cluster")
