"""Runs inside a lab with a rack: one hub, the real core controllers, the providers, and a cluster from its objects to
its end. Prints what was seen, as JSON.

python -m tests.cluster_api.whole FACTS STACKFILE WHAT     WHAT: how often the providers are killed meanwhile, or
                                                           `day-two`: what comes after
                                                           `limited`: a roll, where one machine of the hub may be away
                                                           `pivoted`: to a hub in the cluster itself, and back
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.cluster_api import day_two
from tests.cluster_api import hub as hubs
from tests.cluster_api import objects as made
from tests.cluster_api.hub import OWN, Hub
from tools import stackfile

_LONGEST = 900.0
_LIMITS = ("--max-away", "1", "--max-installing", "1")


def settings_of(facts: Path, stack: Path) -> tuple[dict[str, Any], dict[str, str], str]:
    """The stack file with what the lab tells, as the objects have it; its secrets; and the lab's authorities."""
    told = json.loads(facts.read_text())
    return *of_document(yaml.safe_load(stack.read_text()), told), str(told["ca_path"])


def of_document(document: dict[str, Any], facts: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The same of what is in a stack file and what the lab tells, without authorities."""
    config = stackfile.for_lab(document, facts)
    tree = {key.partition(":")[2]: value for key, value in config.document["config"].items()}
    secrets = {key.partition(":")[2].replace("[", ".").replace("]", ""): text for key, text in config.secrets.items()}
    return {key: value for key, value in tree.items() if key != "lab"}, secrets


@contextlib.contextmanager
def _killed(hub: Hub, times: int, options: Sequence[str]) -> Generator[Any]:
    """The providers, which `times` kills hit, one in each of so many steps of the installation."""
    left = list(range(times))
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(hub.working("providers", options=options))
        seen: set[str] = set()

        def watch(steps: set[str]) -> None:
            nonlocal process
            if left and steps - seen:
                seen.update(steps)
                left.pop()
                assert process.pid is not None
                os.kill(process.pid, signal.SIGKILL)
                process.stop()
                process = stack.enter_context(hub.working(f"providers-{times - len(left)}"))

        yield watch


def _steps(hub: Hub, name: str) -> set[str]:
    """What is in the install state, by its keys."""
    return set((hub.get("secrets", f"{name}-install-state") or {}).get("data") or {})


def main() -> None:
    """One cluster."""
    facts, stack, do = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    tree, secrets, authority = settings_of(facts, stack)
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):  # what `make` has `up` trust in the lab
        os.environ[variable] = authority
    name = str(tree["clusterName"])
    workers = sum(server["name"].startswith("worker-") for server in tree["platform"]["servers"])
    with (
        tempfile.TemporaryDirectory() as folder,
        hubs.hub(Path(folder), lease=60) as hub,
        hub.core_controllers(),
        _killed(hub, int(do) if do.isdecimal() else 0, _LIMITS if do == "limited" else ()) as watch,
    ):
        began = time.monotonic()
        made.create(hub, tree, secrets, workers=workers)

        def complete() -> bool:
            watch(_steps(hub, name))
            machines = hub.list(made.SERVERS)
            joined = [hub.condition(made.SERVERS, each["metadata"]["name"], "Ready")[1] for each in machines]
            done = hub.condition(made.CONTROL_PLANES, name, "InstallComplete")[0] == "True"
            return done and len(joined) == len(tree["platform"]["servers"]) and set(joined) == {"Joined"}

        hub.until(complete, "the cluster is there", _LONGEST)
        hub.until(lambda: all(_node(each) for each in hub.list(made.MACHINES)), "Machines know their Nodes", 120)
        seconds = time.monotonic() - began
        if do in day_two.COURSES:
            day_two.run(hub, name, facts.parent, len(tree["platform"]["servers"]), do)
        else:
            _scale(hub, name, workers)
        seen = {
            "seconds": round(seconds, 1),
            "machines": {each["metadata"]["name"]: _node(each) for each in hub.list(made.MACHINES)},
            "servers": {each["metadata"]["name"]: each["spec"]["server"] for each in hub.list(made.SERVERS)},
            "removed": hub.condition(made.CONTROL_PLANES, name, "BootstrapRemoved")[0],
            "kubeconfig": bool(hub.get("secrets", f"{name}-kubeconfig")),
            "installing": hub.condition(made.FACILITIES, name, "Installing"),
            "nodes": _checked(hub, name),
        }
        hub.delete(made.CLUSTERS, name)
        hub.until(lambda: hub.get(made.CLUSTERS, name) is None, "the cluster is gone", _LONGEST)
        leases = {each["metadata"]["name"] for each in hub.list("leases.coordination.k8s.io", OWN)}
        left = [each for kind in (made.MACHINES, made.SERVERS, made.FACILITIES) for each in hub.list(kind)]
        seen |= {"left": len(left), "leases": sorted(leases), "state": sorted(_steps(hub, name))}
    print(json.dumps(seen))


def _scale(hub: Hub, name: str, workers: int) -> None:
    """One worker less, which is drained and goes, and one more, which joins again."""
    nodes = {_node(each) for each in hub.list(made.MACHINES)}
    for count in (workers - 1, workers):
        hub.patch(made.DEPLOYMENTS, f"{name}-workers", {"spec": {"replicas": count}})
        there = len(nodes) - workers + count

        def settled(there: int = there) -> bool:
            found = hub.list(made.MACHINES)
            servers = [hub.condition(made.SERVERS, each["metadata"]["name"], "Ready")[1] for each in found]
            return len(found) == there == len(hub.list(made.SERVERS)) and set(servers) == {"Joined"}

        hub.until(settled, f"{count} workers", _LONGEST)
    hub.until(lambda: {_node(each) for each in hub.list(made.MACHINES)} == nodes, "all nodes are back", 120)


def _checked(hub: Hub, name: str) -> list[str]:
    """The nodes whose checks the outputs have; those of what is declared last, once that is there."""
    hub.until(lambda: hub.condition(made.CONTROL_PLANES, name, "AsDeclared")[0] == "True", "nothing is left", _LONGEST)
    secret = hub.get("secrets", f"{name}-outputs") or {}
    outputs = json.loads(base64.b64decode(secret["data"]["value"]))
    return [node["name"] for node in outputs["nodes"] if node["checks"]]


def _node(machine: dict[str, Any]) -> str:
    return str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")


if __name__ == "__main__":
    main()
