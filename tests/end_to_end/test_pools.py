"""A facility of several stacks: killed at any moment, a pool added and removed, and everything taken down again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end import processes
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project, Run

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]

_DOMAIN = "pooled.facility.test"
_SECONDS = 900.0
_LEFT = "nothing has changed since the last `up` of this"
_POOLS: list[dict[str, Any]] = [
    {"name": "compute", "first": 10, "count": 2},
    {"name": "gpu", "first": 20, "count": 2, "labels": {"example.com/kind": "gpu"}},
]
_OWN = [f"pooled-control-plane-{n}" for n in range(3)] + [f"pooled-worker-{n}" for n in range(2)]


@pytest.fixture
def pooled(tmp_path: Path) -> Generator[Project, None, None]:
    """A copy of the project, nothing of it up, whose stack has pools. Labels of nodes want the real Kubernetes API."""
    yield from copies(tmp_path, stack="pooled", variant={"workers": {"pools": _POOLS}})


def _workers(*pools: dict[str, Any]) -> list[str]:
    return [f"pooled-worker-{pool['first'] + n}" for pool in pools for n in range(pool["count"])]


def _assert_finished(project: Project, *pools: dict[str, Any]) -> dict[str, str]:
    """Everything that must be there is, once, and nothing else; the ids of the machines."""
    output, holdings, expected = project.output(), project.holdings(), [*_OWN, *_workers(*pools)]
    assert sorted(node["name"] for node in output["nodes"]) == sorted(f"{name}.{_DOMAIN}" for name in expected)
    assert {check["status"] for node in output["nodes"] for check in node["checks"]} == {"passed"}
    assert set(output.get("pools", {})) == {pool["name"] for pool in pools}
    assert not [name for name in output if name.startswith("forPools")]
    public = {node["name"]: node["public_ipv4"] for node in output["nodes"]}
    named = Counter(f"{name}. A {address}" for name, address in public.items())
    apps = Counter(f"*.apps.{_DOMAIN}. A {address}" for name, address in public.items() if "-worker-" in name)
    records = Counter(each for each in holdings["records"] if " A " in each and ". A " in each)
    assert {each: count for each, count in records.items() if not each.startswith("api")} == dict(named + apps)
    devices = project.devices()
    assert sorted(devices) == sorted(expected)
    return devices


def _assert_unchanged(project: Project, pools: int) -> None:
    for target in ("preview", "up"):
        out = project.make(target, seconds=_SECONDS).out
        assert out.count(f"{target}: no changes") == 1 and out.count(f"{_LEFT} pool") == pools, out
    for target in ("preview", "up", "refresh", "up"):
        out = project.make(target, "POOLS=all", seconds=_SECONDS).out
        assert out.count(f"{target}: no changes") == 1 + pools and _LEFT not in out, out


def _kill(project: Project, target: str, when: Callable[[Run], object], what: str, *, engine: bool = False) -> None:
    """Run a command to a point, and kill it there, or only the engines that it started."""
    run = project.start(target)
    run.until(lambda: when(run), what, _SECONDS)
    if engine:
        processes.kill([each for each in processes.family(run.pid) if each.program == "pulumi"])
        assert run.wait(120).status != 0
    else:
        run.kill(project.supervisor())


def _begun(project: Project, pool: str, resource: str) -> bool:
    """Whether the engine has begun with a resource of a pool's stack."""
    file = project.checkpoint.with_name(f"pooled-{pool}.json")
    return file.exists() and f"::{resource}" in file.read_text()


def _checkpoints(project: Project) -> dict[str, str]:
    return {file.stem: file.read_text() for file in project.checkpoint.parent.glob("*.json")}


@pytest.mark.timeout(3000)
def test_a_facility_of_several_stacks(pooled: Project) -> None:
    compute, gpu = _POOLS
    # Killed while the cluster is formed, while pools' machines are ordered, at their gates; the engines alone as well.
    _kill(pooled, "up", lambda run: "gate bootstrap-reachable: passed" in run.printed(), "bootstrap is reachable")
    _kill(pooled, "up", lambda _: _begun(pooled, "gpu", "pooled-worker-20-device"), "a machine of a pool is ordered")
    _kill(pooled, "up", lambda _: _begun(pooled, "compute", "nodes-ready"), "nodes are waited for", engine=True)
    done = pooled.make("up", seconds=_SECONDS)
    assert "was interrupted or failed" in done.text
    before = _assert_finished(pooled, compute, gpu)
    _assert_unchanged(pooled, pools=2)

    # A pool comes: nobody else's machine is touched, nor is another pool's state.
    late = {"name": "late", "first": 30, "count": 1}
    states = _checkpoints(pooled)
    assert max(map(len, (states["pooled-gpu"], states["pooled-compute"]))) < len(states["pooled"])
    pooled.keep(workers={"pools": [*_POOLS, late]})
    told = pooled.make("up", seconds=_SECONDS).text
    assert told.count(f"{_LEFT} pool") == 2 and f"{_LEFT[:-5]} the cluster's own stack, 'pooled'" in told
    with_late = _assert_finished(pooled, compute, gpu, late)
    assert {name: with_late[name] for name in before} == before

    # Another one goes, and is killed while it goes.
    pooled.keep(workers={"pools": [compute, late]})
    _kill(pooled, "up", lambda run: "gpu: " in run.printed() and "deleted" in run.printed(), "a pool is being deleted")
    pooled.make("up", seconds=_SECONDS)
    after = _assert_finished(pooled, compute, late)
    assert after == {name: identity for name, identity in with_late.items() if name not in _workers(gpu)}
    assert "pooled-gpu" not in _checkpoints(pooled)

    # No machine moves from one stack to another one.
    pooled.configure(workers={"pools": [{**compute, "name": "renamed"}, late]})
    refused = pooled.make("up", fails=True).told
    assert "pooled-worker-10" in refused and "would move to pool 'renamed'; nothing was changed" in refused
    pooled.restore()

    _kill(pooled, "down", lambda run: "compute: " in run.printed() and "deleted" in run.printed(), "a pool goes")
    pooled.assert_down()
