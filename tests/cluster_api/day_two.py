"""What comes after a cluster was made: rolling changes, machines that are not healthy, another hub.

All by the real core controllers and clusterctl; called within the lab by `whole`.
"""

from __future__ import annotations

import base64
import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from lab.bmc import control
from lab.layout import Layout
from metal_ipi.cluster_api.absences import LABEL, Absence
from tests.cluster_api import hub as hubs
from tests.cluster_api import objects as made
from tests.cluster_api.hub import NAMESPACE, OWN, Hub

_LONGEST = 600.0
_LEASES = "leases.coordination.k8s.io"
_CONTROL_PLANE = "cluster.x-k8s.io/control-plane"


class Fleet:
    """A cluster on a hub, and its servers."""

    def __init__(self, hub: Hub, name: str, layout: Layout) -> None:
        self.hub, self.name, self._layout = hub, name, layout

    def servers(self) -> dict[str, dict[str, Any]]:
        """The rack's, by address of their BMC's last part: what each has booted, and whether it is on."""
        return control.ask(self._layout, {"do": "servers"})

    def power(self, server: str, to: str) -> None:
        """Of one of the rack's servers, by the name that the settings have for it."""
        role, _, number = server.rpartition("-")
        place = int(number) + (0 if role == "control-plane" else 3)
        control.ask(self._layout, {"do": "power", "server": sorted(self.servers())[place], "to": to})

    def machines(self) -> dict[str, str]:
        """Which server each Machine has."""
        return {each["metadata"]["name"]: str(each["spec"].get("server")) for each in self.hub.list(made.SERVERS)}

    def one(self, role: str) -> tuple[str, str]:
        """The first Machine of a role, and its server."""
        return min((name, server) for name, server in self.machines().items() if server.startswith(role))

    def settled(self, count: int) -> bool:
        """Whether all Machines are there, and their nodes."""
        found = self.hub.list(made.MACHINES)
        reasons = {self.hub.condition(made.SERVERS, name, "Ready")[1] for name in self.machines()}
        there = {each["metadata"]["name"] for each in found} == self.machines().keys()
        nodes = all(((each.get("status") or {}).get("nodeRef") or {}).get("name") for each in found)
        return there and len(found) == count and reasons == {"Joined"} and nodes

    def until_settled(self, count: int, what: str) -> None:
        """Wait for that."""
        self.hub.until(lambda: self.settled(count), what, _LONGEST)

    def annotate(self, machine: str, value: str | None) -> None:
        """Have a MachineHealthCheck find a Machine not healthy, or no more."""
        self.hub.patch(
            made.MACHINES, machine, {"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": value}}}
        )


def power_cycled(fleet: Fleet, count: int) -> None:
    """A worker loses its power: that is told, and its server is switched on again, by the external remediation."""
    hub, (machine, server) = fleet.hub, fleet.one("worker")
    template = made.remediation_template(hub, "gentle", powerCycles=1, timeoutSeconds=300)
    labels = {"cluster.x-k8s.io/deployment-name": f"{fleet.name}-workers"}
    fleet.power(server, "off")
    hub.until(lambda: hub.condition(made.SERVERS, machine, "Ready")[1] == "NodeNotReady", "it is noticed", 180)
    assert f"its server {server} is off" in hub.condition(made.SERVERS, machine, "Ready")[2]
    told = hub.clusterctl("describe", "cluster", fleet.name, "--namespace", NAMESPACE, "--show-conditions", "all")
    assert "NodeNotReady" in told and "MachineDeployment" in told, told
    made.health_check(hub, "workers", fleet.name, labels, templateRef=template)
    hub.until(lambda: hub.get(made.REMEDIATIONS, machine), "the remediation is asked for")
    fleet.until_settled(count, "it is back")
    hub.until(lambda: hub.get(made.REMEDIATIONS, machine) is None, "the remediation is over", 120)
    assert fleet.machines()[machine] == server  # the same machine, not one that was made anew
    assert hub.condition(made.MACHINES, machine, "ExternallyRemediated")[:2] == ("True", "Remediated")


def made_anew(fleet: Fleet, count: int) -> None:
    """A worker that is not to be power-cycled is handed over: its MachineSet makes it anew, on a free server."""
    hub, (machine, server) = fleet.hub, fleet.one("worker")
    boots = fleet.servers()
    hub.patch(made.REMEDIATION_TEMPLATES, "gentle", {"spec": {"template": {"spec": {"powerCycles": 0}}}})
    fleet.annotate(machine, "")
    hub.until(lambda: machine not in fleet.machines(), "the Machine goes", _LONGEST)
    fleet.until_settled(count, "another one has joined")
    assert server in fleet.machines().values() and _changed(boots, fleet.servers()) == 1


def control_plane_kept(fleet: Fleet, count: int) -> None:
    """Of the control plane one is made anew, and none where etcd would end."""
    hub, (machine, server) = fleet.hub, fleet.one("control-plane")
    others = sorted((name, each) for name, each in fleet.machines().items() if each.startswith("control-plane"))[1:]
    made.health_check(hub, "control-plane", fleet.name, {_CONTROL_PLANE: ""})
    hub.patch(made.HEALTH_CHECKS, "control-plane", {"spec": {"checks": {"unhealthyNodeConditions": None}}})
    fleet.power(others[0][1], "off")
    hub.until(lambda: hub.condition(made.SERVERS, others[0][0], "Ready")[1] == "NodeNotReady", "it is noticed", 180)
    fleet.annotate(machine, "")
    hub.until(
        lambda: hub.condition(made.MACHINES, machine, "OwnerRemediated")[1] == "CannotBeRemediated", "it is refused"
    )
    assert "etcd needs 2" in hub.condition(made.MACHINES, machine, "OwnerRemediated")[2]
    hub.until(
        lambda: machine in hub.condition(made.CONTROL_PLANES, fleet.name, "Remediating")[2], "the control plane says so"
    )
    fleet.power(others[0][1], "on")
    hub.until(lambda: machine not in fleet.machines(), "the Machine goes once the other one is back", _LONGEST)
    fleet.until_settled(count, "another one has joined")
    assert server in fleet.machines().values()


def rolled(fleet: Fleet, count: int) -> None:
    """Another template: all workers are made anew, one after the other, each drained first by the core."""
    hub, before = fleet.hub, {name for name, server in fleet.machines().items() if server.startswith("worker")}
    template = hub.get(made.TEMPLATES, fleet.name)
    assert template is not None
    hub.make(made.TEMPLATES, {**template, "metadata": {"name": "another"}})
    change = {"spec": {"template": {"spec": {"infrastructureRef": {"name": "another"}}}}}
    hub.patch(made.DEPLOYMENTS, f"{fleet.name}-workers", change)
    hub.until(lambda: not before & fleet.machines().keys(), "the former machines go", _LONGEST)
    fleet.until_settled(count, "all workers are new")
    log = (hub.directory / "core.log").read_text()
    for machine in before:
        assert any("Drain completed" in line and machine in line for line in log.splitlines()), machine


def held_up(fleet: Fleet, count: int) -> None:
    """One machine of the hub may be away, and one of another cluster is: nothing is drained, and why is told."""
    hub = fleet.hub
    elsewhere = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "elsewhere"}}
    reference = made.reference("infrastructure", "MetalIpiCluster", "elsewhere")
    hub.make(made.CLUSTERS, {**elsewhere, "spec": {"paused": True, "infrastructureRef": reference}}, "other")
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    group, why = "cluster.x-k8s.io/deployment-name=w", "deleted"
    away = Absence(cluster="other/elsewhere", server="worker-9", group=group, of=1, why=why, since=since)
    metadata = {"name": "elsewhere", "labels": {"cluster.x-k8s.io/cluster-name": "elsewhere"}}
    kind = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "MetalIpiMachine"}
    hub.make(made.SERVERS, {**kind, "metadata": metadata, "spec": {"server": "worker-9"}}, "other")
    hub.make(_LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **away.lease}, OWN)
    template = hub.get(made.TEMPLATES, fleet.name)
    assert template is not None
    hub.make(made.TEMPLATES, {**template, "metadata": {"name": "held-up"}})
    change = {"spec": {"template": {"spec": {"infrastructureRef": {"name": "held-up"}}}}}
    before, boots = {name: server for name, server in fleet.machines().items() if "worker" in server}, fleet.servers()
    hub.patch(made.DEPLOYMENTS, f"{fleet.name}-workers", change)

    def waiting() -> list[str]:
        return [name for name in before if hub.condition(made.SERVERS, name, "Ready")[1] == "TooManyAway"]

    (first,) = hub.until(waiting, "one waits", 120)
    assert "other/elsewhere/worker-9 (deleted, since 20" in hub.condition(made.SERVERS, first, "Ready")[2]
    hub.until(lambda: "pre-drain hooks" in hub.condition(made.MACHINES, first, "Deleting")[2], "the core waits")
    told = f"/{before[first]}: it waits until it may be away"
    assert told in (hub.directory / "providers.log").read_text() and fleet.servers() == boots
    # Whoever looks after the hub ends it: that machine will not come back.
    hub.delete(_LEASES, away.name, OWN)
    hub.until(lambda: not before.keys() & fleet.machines().keys(), "the former machines go", _LONGEST)
    fleet.until_settled(count, "all workers are new")
    taken = [line for line in (hub.directory / "providers.log").read_text().splitlines() if " is away (" in line]
    assert len(taken) == len(before) and all("1 of 1 of this hub" in line for line in taken), taken
    hub.until(lambda: not _away(hub), "nobody is away any more", 180)


def _away(hub: Hub) -> list[str]:
    return [
        each["metadata"]["name"] for each in hub.list(_LEASES, OWN) if LABEL in (each["metadata"].get("labels") or ())
    ]


def _collect(hub: Hub) -> None:
    """What Kubernetes' garbage collector does, which is not there: what owned these is gone."""
    owners = (made.MACHINES, made.CONFIGS, made.FACILITIES, made.CONTROL_PLANES, made.CLUSTERS)
    there = {each["metadata"]["uid"] for kind in owners for each in hub.list(kind)}
    for kind in (made.REMEDIATIONS, "secrets"):
        for each in hub.list(kind):
            owned = [owner["uid"] for owner in each["metadata"].get("ownerReferences") or ()]
            if owned and there.isdisjoint(owned):
                hub.delete(kind, each["metadata"]["name"])
    hub.until(
        lambda: all(hub.get(made.MACHINES, each["metadata"]["name"]) for each in hub.list(made.REMEDIATIONS)), "gone"
    )


def own_hub(fleet: Fleet, directory: Path) -> contextlib.AbstractContextManager[Hub]:
    """A hub in the cluster itself."""
    secret = fleet.hub.get("secrets", f"{fleet.name}-kubeconfig")
    assert secret is not None
    return hubs.within(yaml.safe_load(base64.b64decode(secret["data"]["value"])), directory, lease=60)


def moved(fleet: Fleet, count: int, other: contextlib.AbstractContextManager[Hub]) -> None:
    """To another hub, and back; no server notices."""
    source, boots = fleet.hub, fleet.servers()
    checks = [each["metadata"]["name"] for each in source.list(made.HEALTH_CHECKS)]
    state = (source.get("secrets", f"{fleet.name}-install-state") or {})["data"]
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(other)
        stack.enter_context(target.core_controllers())
        stack.enter_context(target.working("elsewhere"))
        for start, end in ((source, target), (target, source)):
            _collect(start)
            start.clusterctl("move", "--namespace", NAMESPACE, "--to-kubeconfig", str(end.admin))
            assert start.list(made.SERVERS) == [] and start.get(made.CLUSTERS, fleet.name) is None
            fleet.hub = end
            fleet.until_settled(count, "all is known again")
            end.until(lambda end=end: is_complete(end, fleet.name), "it is complete")
            assert (end.get("secrets", f"{fleet.name}-install-state") or {})["data"] == state
            assert end.get("secrets", f"{fleet.name}-settings")
            assert [each["metadata"]["name"] for each in end.list(made.HEALTH_CHECKS)] == checks
            assert fleet.servers() == boots


def is_complete(hub: Hub, name: str) -> bool:
    """Whether the installation is."""
    return hub.condition(made.CONTROL_PLANES, name, "InstallComplete")[0] == "True"


def _changed(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(before[name]["boots"] != after[name]["boots"] for name in before)


COURSES: Mapping[str, Sequence[str]] = {
    "day-two": ("power-cycled", "made anew", "rolled", "moved", "control plane"),
    "pivoted": ("pivoted",),
    "limited": ("held up",),
}
"""What is done, by the name of a run."""


def run(hub: Hub, name: str, state: Path, count: int, course: str) -> None:
    """One of COURSES, with so many Machines."""
    fleet = Fleet(hub, name, Layout(state))
    (other := hub.directory / "other").mkdir()
    steps: Mapping[str, Callable[[], None]] = {
        "held up": lambda: held_up(fleet, count),
        "power-cycled": lambda: power_cycled(fleet, count),
        "made anew": lambda: made_anew(fleet, count),
        "rolled": lambda: rolled(fleet, count),
        "moved": lambda: moved(fleet, count, hubs.hub(other, lease=60)),
        "pivoted": lambda: moved(fleet, count, own_hub(fleet, other)),
        "control plane": lambda: control_plane_kept(fleet, count),
    }
    for what in COURSES[course]:
        print(what, flush=True, file=sys.stderr)
        steps[what]()
