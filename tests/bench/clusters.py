"""Many clusters of simulated machines from one hub, against one alone: time, and what the providers need."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from lab.bmc.identity import MOST
from lab.cluster_api import CLUSTERCTL, MANAGER
from tests.bench.clusters_load import SIZE
from tests.bench.measure import BenchError, Line, say
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import RACK

_LIMIT = 7200
_MEMORY = 400 << 20
"""Bytes for each cluster: its API server, etcd and six machines."""


def clusters(count: int, scratch: Path, installing: int = 0) -> Iterator[Line]:
    """One line: so many at once, against one; `installing` is how many the hub installs at once, 0: all."""
    if not 1 < count <= MOST // SIZE:
        raise BenchError(f"--clusters {count}: give 2 to {MOST // SIZE}, for the lab has at most {MOST} servers")
    there, needed = psutil.virtual_memory().available, count * _MEMORY
    if there < needed:
        raise BenchError(
            f"--clusters {count}: they need {needed >> 30} GiB of memory, most of it for their API servers, and "
            f"{there >> 30} are free: give a smaller number"
        )
    for tool in (MANAGER, CLUSTERCTL):
        tool.ensure(say)
    directory = scratch / "clusters"
    directory.mkdir()
    for project in copies(directory, stack=RACK):
        project.lab("up", "--machines", "simulated", "--rack", str(SIZE * count), "--shared-api-servers")
        facts, stack = project.layout.state / "facts.json", project.root / "stacks" / f"Pulumi.{RACK}.yaml"
        found: dict[int, dict[str, Any]] = {}
        for size in (1, count):
            say(f"{size} clusters of {SIZE} machines from one hub")
            numbers = str(size), str(installing)
            command = (sys.executable, "-m", "tests.bench.clusters_load", str(facts), str(stack), *numbers)
            found[size] = json.loads(project.facility(*command, seconds=_LIMIT).splitlines()[-1])
            say(f"  {found[size]}")
        yield line(count, found[1], found[count], installing)


def line(count: int, alone: dict[str, Any], all_: dict[str, Any], installing: int) -> Line:
    """The figure, from what was measured of one and of so many, of which the hub installs `installing` at once."""
    return {
        "figure": "clusters",
        "clusters": count,
        "machines": SIZE,
        "installing_at_once": installing,
        "seconds": all_["seconds"],
        "first_seconds": all_["first_seconds"],
        "alone_seconds": alone["seconds"],
        "ratio": round(all_["seconds"] / alone["seconds"], 2),
        "gone_seconds": all_["gone_seconds"],
        "memory_mib": all_["memory_mib"],
        "memory_mib_per_cluster": round((all_["memory_mib"] - alone["memory_mib"]) / (count - 1), 1),
        "cpu_seconds_per_cluster": round(all_["cpu_seconds"] / count, 1),
        "requests_per_cluster": round(all_["requests"] / count),
        "plans_per_cluster": round(all_["plans"] / count, 1),
        "at_rest": {
            "look_ms": all_["at_rest"]["look_ms"],
            "cpu_seconds_per_cluster_and_hour": round(all_["at_rest"]["cpu_seconds_per_hour"] / count, 1),
            "requests_per_cluster_and_minute": round(all_["at_rest"]["requests_per_minute"] / count, 1),
        },
    }
