"""The figures. Each yields its lines as they are measured; none of them judges anything but its own goal."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.setup import settle
from tests.bench.clusters import clusters
from tests.bench.ironic import ironic
from tests.bench.measure import BenchError, Line, Run, alternate, compared, say, skipped, slope, timed
from tests.bench.project import ROOT, ProjectCopy
from tests.bench.spent import spent_by_lab
from tools.engine import Engine
from tools.operations import PARALLEL

PREVIEW_GOAL = 1.25
PER_WORKER_GOAL = 2.1
"""Two, and a part of a command that checks many."""
STATE_GOAL = 5000
LIBVIRT_GOAL = 1.5
SCALE_GOAL = 1.5
REQUESTS_GOAL = 4.0
_STACK_ITSELF = 1
"""The engine counts the stack as one of its resources; the bare program has one, too."""
_TO_CREATE = re.compile(r"^preview: (\d+) to create, 0 unchanged", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What the figures are measured with."""

    project: ProjectCopy
    engine: Engine
    scratch: Path
    """A directory that is removed at the end."""
    workers: tuple[int, ...]
    """Cluster sizes, ascending."""
    fleets: tuple[int, ...]
    """Those that `scale` measures, ascending."""
    pairs: int
    """How often previews are measured."""
    servers: int
    """How many `ironic` has deployed."""
    clusters: int
    """How many `clusters` has at once."""
    installing: int
    """How many of them the hub installs at once; 0: all."""
    counts: dict[int, int] = field(default_factory=dict[int, int])
    """Resources by number of workers, without the stack itself, as seen in previews so far."""

    def preview(self, workers: int) -> float:
        """Preview our stack of so many workers, as `make preview` does without state or network."""
        stack = self.project.resize("da11", workers)
        run = timed(self.project.tools("preview", stack), cwd=self.project.root, env=os.environ, limit=120)
        found = _TO_CREATE.search(run.out)
        if found is None:
            raise BenchError(f"the preview of {workers} workers does not say how much it creates\n{run.out}")
        self.counts[workers] = int(found[1]) - _STACK_ITSELF
        return run.seconds

    def resources(self, workers: int) -> int:
        """How many resources a stack of so many workers has."""
        if workers not in self.counts:
            self.preview(workers)
        return self.counts[workers]

    def bare(self, operation: str, resources: int) -> float:
        """Seconds that the bare program takes with so many resources."""
        return self.bare_run(operation, resources).seconds

    def bare_run(self, operation: str, resources: int) -> Run:
        """Run the bare program with so many resources; its state is thrown away afterwards."""
        with tempfile.TemporaryDirectory(dir=self.scratch, prefix="bare-") as state:
            command = [sys.executable, "-m", "tests.bench.bare", operation, "--resources", str(resources)]
            command += ["--state", state, "--engine", str(self.engine.path), "--parallel", str(PARALLEL)]
            command += ["--engine-version", self.engine.version]
            return timed(command, cwd=ROOT, env=os.environ, limit=1800)

    def up(self, stack: str, machines: str, limit: float) -> Run:
        """Bring a lab stack up as `make up` does."""
        command = self.project.tools("up", stack, machines)
        return timed(command, cwd=self.project.root, env=os.environ, limit=limit)

    def requests(self) -> dict[str, Any]:
        """What the lab's Metal API was asked since it was started, and how long it took."""
        command = self.project.in_lab(
            "-m", "tests.end_to_end.inside", str(self.project.lab), "call", "GET", "/lab/requests"
        )
        return json.loads(timed(command, cwd=self.project.root, env=os.environ, limit=60).out)

    @contextlib.contextmanager
    def taken_down(self, stack: str, limit: float = 300) -> Generator[None]:
        """Whatever comes: the stack and its lab are taken down afterwards, or the lab alone where the stack cannot."""
        try:
            yield
        except BenchError as error:
            say(str(error))  # what comes of taking it down must not hide it
            raise
        finally:
            say(f"  taking {stack} down")
            try:
                timed(self.project.tools("down", stack), cwd=self.project.root, env=os.environ, limit=limit)
            except BenchError as error:
                say(str(error))  # nor must what comes of the lab's removal, which has a stack in it
                timed(self.project.lab_down(), cwd=self.project.root, env=os.environ, limit=300)
                raise


def preview(bench: Bench) -> Iterator[Line]:
    """Preview of a new cluster, against the bare program's preview of as many resources."""
    for workers in bench.workers:
        resources = bench.resources(workers)  # also lets Python compile what it will load
        say(f"preview, {workers} workers, {resources} resources")
        ours, bare = alternate(
            lambda workers=workers: bench.preview(workers),
            lambda resources=resources: bench.bare("preview", resources),
            bench.pairs,
        )
        yield compared("preview", ours, bare, goal=PREVIEW_GOAL, workers=workers, resources=resources)


def resources_per_worker(bench: Bench) -> Iterator[Line]:
    """How many resources one more worker takes."""
    sizes = {workers: bench.resources(workers) for workers in (1, *bench.workers)}
    yield slope("resources_per_worker", sizes, PER_WORKER_GOAL)


def up_simulated(bench: Bench) -> Iterator[Line]:
    """A whole `up` on simulated machines, the lab's start included, against the bare program's `up`."""
    for workers in bench.workers:
        resources = bench.resources(workers)
        stack = bench.project.resize("lab", workers)
        say(f"up on simulated machines, {workers} workers, {resources} resources")
        with bench.taken_down(stack):
            ours = bench.up(stack, "simulated", limit=400).seconds
        bare = bench.bare("up", resources)
        say(f"  {ours:.1f} s, baseline {bare:.1f} s")
        yield compared("up_simulated", [ours], [bare], workers=workers, resources=resources)


def scale(bench: Bench) -> Iterator[Line]:
    """What many workers cost an `up` on simulated machines: time and memory against the bare program, the state's size,
    and requests."""
    asked, kept = dict[int, int](), dict[int, int]()
    for workers in bench.fleets:
        stack = bench.project.resize("lab", workers)
        say(f"up on simulated machines, {workers} workers")
        with bench.taken_down(stack, limit=3600):
            ours = bench.up(stack, "simulated", limit=3600)
            say(f"  {ours.seconds:.0f} s, {ours.memory_mib} MiB")
            lab, requests = spent_by_lab(bench.project.lab), bench.requests()
            resources, kept[workers] = bench.project.state(stack)
        bare = bench.bare_run("up", resources)
        asked[workers] = sum(count for route, count in requests["counts"].items() if "/metal/v1/" in route)
        line = compared("scale", [ours.seconds], [bare.seconds], goal=SCALE_GOAL, workers=workers, resources=resources)
        yield line | {
            "seconds_per_worker": round(ours.seconds / workers, 3),
            "baseline_seconds_per_worker": round(bare.seconds / workers, 3),
            "state_bytes": kept[workers],
            "memory_mib": ours.memory_mib,
            "baseline_memory_mib": bare.memory_mib,
            "cpu_seconds": _split(ours) | {"lab": round(lab, 1)},
            "baseline_cpu_seconds": _split(bare),
            "api_p95_ms": round(requests["seconds"]["p95"] * 1000, 1),
        }
    if len(asked) > 1:
        yield slope("state_bytes_per_worker", kept, STATE_GOAL, of="bytes")
        yield slope("requests_per_worker", asked, REQUESTS_GOAL, of="requests")


def pools(bench: Bench) -> Iterator[Line]:
    """What it gives to have workers in stacks of their own: the engine's time, memory, and the largest state."""
    workers = min(bench.fleets)
    for per_stack in (0, workers // 2, workers // 4):
        stack = bench.project.resize("lab", workers, per_stack)
        say(f"up on simulated machines, {workers} workers, {per_stack or workers} a stack")
        with bench.taken_down(stack, limit=3600):
            ours = bench.up(stack, "simulated", limit=3600)
            states = bench.project.states(stack)
        yield {
            "figure": "pools",
            "workers": workers,
            "per_stack": per_stack or workers,
            "stacks": len(states),
            "seconds": round(ours.seconds, 1),
            "memory_mib": ours.memory_mib,
            "cpu_seconds": _split(ours),
            "largest_state_bytes": max(size for _, size in states.values()),
        }


def _split(run: Run) -> dict[str, float]:
    """Processor seconds of the engine, and of the program with its plug-ins."""
    engine = run.engine_cpu_seconds
    return {"engine": round(engine, 1), "program": round(run.cpu_seconds - engine, 1)}


def up_libvirt(bench: Bench) -> Iterator[Line]:
    """A whole `up` of the lab's stack on libvirt machines, against the same number of machines just booting to SSH."""
    name = "up_libvirt"
    reasons: list[str] = []
    if settle("libvirt", reasons.append) != "libvirt":
        yield skipped(name, "; ".join(reasons))
        return
    machines = bench.project.size("lab")
    say(f"boot of {machines} libvirt machines to SSH")
    command = [sys.executable, "-m", "tests.bench.time_to_ssh", "--count", str(machines)]
    booted = timed(command, cwd=ROOT, env=os.environ, limit=900)
    baseline = float(json.loads(booted.out)["seconds"])
    say(f"up on libvirt machines, beside {baseline:.0f} s to boot")
    with bench.taken_down("lab"):
        ours = bench.up("lab", "libvirt", limit=900).seconds
        really = bench.project.machines("lab")
    if really != "libvirt":
        raise BenchError(f"the lab went on with {really} machines")
    yield compared(name, [ours], [baseline], goal=LIBVIRT_GOAL, machines=machines)


FIGURES: dict[str, Callable[[Bench], Iterator[Line]]] = {
    "preview": preview,
    "resources_per_worker": resources_per_worker,
    "up_simulated": up_simulated,
    "scale": scale,
    "pools": pools,
    "up_libvirt": up_libvirt,
    "ironic": lambda bench: ironic(bench.servers, bench.scratch),
    "clusters": lambda bench: clusters(bench.clusters, bench.scratch, bench.installing),
}
