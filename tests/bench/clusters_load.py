"""Runs inside a lab with a rack: one hub with the real core controllers and our providers, and as many clusters as are
asked for, each of six machines of the rack. Prints what they took, as JSON; the last line is it.

python -m tests.bench.clusters_load FACTS STACKFILE COUNT INSTALLING

INSTALLING is how many the hub installs at once; 0: all.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster_api import hub as hubs
from tests.cluster_api import objects as made
from tests.cluster_api.hub import Hub
from tests.cluster_api.whole import of_document
from tests.end_to_end import racks

SIZE = 6
_REST, _LONGEST = 60.0, 7000.0


def settings(
    number: int, document: Mapping[str, Any], facts: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Those of the `number`-th cluster, and its secrets: the next servers of the rack are its own."""
    rack, whole = facts["rack"], copy.deepcopy(dict(document))
    whole["config"]["metal-ipi:clusterName"] = f"bench-{number}"
    whole["config"]["metal-ipi:platform"] |= {
        "gateway": rack["gateway"],
        "prefix": rack["prefix"],
        "servers": [{"name": racks.name(place)} for place in range(SIZE)],
    }
    own = rack["servers"][number * SIZE : (number + 1) * SIZE]
    return of_document(whole, {**facts, "rack": {**rack, "servers": own}})


class Watch:
    """What the providers took."""

    def __init__(self, hub: Hub, process: psutil.Process) -> None:
        self._hub, self._process = hub, process
        self.memory = 0
        """The most bytes at one time; pages that they share count once."""

    def look(self) -> None:
        """See how much memory they have now."""
        family = [self._process, *self._process.children(recursive=True)]
        now = 0
        for each in family:
            try:
                now += each.memory_full_info().pss
            except psutil.Error:  # it ends just now
                continue
        self.memory = max(self.memory, now)

    def spent(self) -> float:
        """Processor seconds, with those of what they started and waited for."""
        return sum(self._process.cpu_times()[:4])

    def figures(self) -> dict[str, float]:
        """Requests, looks, seconds of looks, and plans so far."""
        text = httpx.get(f"http://127.0.0.1:{self._hub.metrics}/metrics", trust_env=False, timeout=60).text
        wanted = {
            "metal_ipi_api_requests_total": "requests",
            "metal_ipi_reconcile_seconds_count": "looks",
            "metal_ipi_reconcile_seconds_sum": "seconds",
            "metal_ipi_plan_seconds_count": "plans",
        }
        found = dict.fromkeys(wanted.values(), 0.0)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name in wanted:
                    found[wanted[sample.name]] += sample.value
        return found


def ready(hub: Hub, names: set[str]) -> set[str]:
    """Which clusters are there as they are declared."""
    joined = dict.fromkeys(names, 0)
    for each in hub.list(made.SERVERS):
        name = each["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"]
        said = {one["type"]: one for one in (each.get("status") or {}).get("conditions") or ()}
        joined[name] = joined.get(name, 0) + (said.get("Ready", {}).get("reason") == "Joined")
    done = {
        each["metadata"]["name"]
        for each in hub.list(made.CONTROL_PLANES)
        if {"InstallComplete", "AsDeclared"}
        <= {one["type"] for one in (each.get("status") or {}).get("conditions") or () if one["status"] == "True"}
    }
    return {name for name in done if joined.get(name) == SIZE}


def measured(hub: Hub, watch: Watch, trees: Mapping[str, tuple[dict[str, Any], dict[str, str]]]) -> dict[str, Any]:
    """All clusters from their objects until they rest, and until they are gone."""
    began, names, seconds = time.monotonic(), set(trees), dict[str, float]()
    for tree, secrets in trees.values():
        made.create(hub, tree, secrets, workers=SIZE - racks.CONTROL_PLANE)

    def all_there() -> bool:
        watch.look()
        asked = time.monotonic()
        with contextlib.suppress(httpx.TimeoutException):  # the hub is busy, and is asked again
            for name in ready(hub, names) - seconds.keys():
                seconds[name] = time.monotonic() - began
                print(f"{name}: {seconds[name]:.0f} s", file=sys.stderr, flush=True)
        time.sleep(min(5.0, max(1.0, 5 * (time.monotonic() - asked))))  # lists of many objects are work for the hub
        return seconds.keys() == names

    hub.until(all_there, "all clusters are there", _LONGEST)
    spent, until_there = watch.spent(), watch.figures()
    at_rest = resting(watch) if len(trees) > 1 else None
    leaves = time.monotonic()
    for name in names:
        hub.delete(made.CLUSTERS, name)

    def all_gone() -> bool:
        time.sleep(1)
        with contextlib.suppress(httpx.TimeoutException):
            return not hub.list(made.CLUSTERS)
        return False

    hub.until(all_gone, "all clusters are gone", _LONGEST)
    return {
        "seconds": round(max(seconds.values()), 1),
        "first_seconds": round(min(seconds.values()), 1),
        "gone_seconds": round(time.monotonic() - leaves, 1),
        "memory_mib": watch.memory >> 20,
        "cpu_seconds": round(spent, 1),
        "requests": round(until_there["requests"]),
        "plans": round(until_there["plans"]),
        "at_rest": at_rest,
    }


def resting(watch: Watch) -> dict[str, Any]:
    """What the providers take where nothing is left to be done."""
    time.sleep(_REST)  # what the last steps brought about
    before, spent = watch.figures(), watch.spent()
    time.sleep(_REST)
    after, per_minute = watch.figures(), 60 / _REST
    looks = after["looks"] - before["looks"]
    return {
        "look_ms": round((after["seconds"] - before["seconds"]) / looks * 1000, 1) if looks else None,
        "cpu_seconds_per_hour": round((watch.spent() - spent) * 60 * per_minute, 1),
        "requests_per_minute": round((after["requests"] - before["requests"]) * per_minute),
    }


def main() -> None:
    """So many clusters."""
    facts, document = json.loads(Path(sys.argv[1]).read_text()), yaml.safe_load(Path(sys.argv[2]).read_text())
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):  # what `make` has `up` trust in the lab
        os.environ[variable] = str(facts["ca_path"])
    trees = {f"bench-{number}": settings(number, document, facts) for number in range(int(sys.argv[3]))}
    with (
        tempfile.TemporaryDirectory() as folder,
        hubs.hub(Path(folder), lease=60) as hub,
        hub.core_controllers(looks_every="10m"),  # as by default
        hub.working(options=("--max-installing", sys.argv[4])) as process,
    ):
        assert process.pid is not None
        print(json.dumps(measured(hub, Watch(hub, psutil.Process(process.pid)), trees)))


if __name__ == "__main__":
    main()
