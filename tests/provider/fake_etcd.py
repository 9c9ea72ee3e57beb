"""etcd of a control plane and its operator, as far as a machine that is installed again has to do with them.

Taken from their source: a machine without data does not go on as a member that is in the list (openshift/etcd
discover-etcd-initial-cluster); on platform none the operator removes no member, adds one for a node that has none only
while all others are healthy, and counts what is in the list (cluster-etcd-operator clustermemberremovalcontroller,
clustermembercontroller, etcdcli/health.go); an etcd pod of each node has etcdctl, whose `endpoint health` ends with 1
where one is not healthy.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.provider.fake_machine import FakeMachine, node_of
from tests.provider.installation_site import CONTROL_PLANE, Site

Json = dict[str, Any]
_IDS = itertools.count(0xCA8C2990A0AA29D1)
NAMESPACE = "/api/v1/namespaces/openshift-etcd"


def etcd_operator(*ill: str, members: int = 3) -> Json:
    """The clusteroperator, in its own words, where some of `members` that are in etcd's list are ill."""
    text = f"{members} members are available"
    if ill:
        count = f"{members - len(ill)} of {text}"
        text = ", ".join([count, *(f"{name} is unhealthy" for name in ill)])
    told = f"EtcdMembersDegraded: {text if ill else 'No unhealthy members found'}"
    conditions = [
        {"type": "Available", "status": "True", "message": f"StaticPodsAvailable: 3\nEtcdMembersAvailable: {text}"},
        {"type": "Degraded", "status": str(len(ill) > 1), "message": told},
    ]
    return {"status": {"conditions": conditions}}


@dataclass(kw_only=True)
class Member:
    """One in the list."""

    id: int
    host: str
    name: str = ""


@dataclass(kw_only=True)
class FakeEtcd:
    """Answers what the cluster does not, and commands in its pods."""

    world: Site
    machines: list[FakeMachine]
    members: list[Member] = field(default_factory=list[Member])
    data: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """Of each machine: the installation that its data is on the disk of, and the member that it is."""
    secrets: set[str] = field(default_factory=set[str])
    broken: str = ""
    """Why commands in pods cannot be run."""

    def __post_init__(self) -> None:
        for machine in self.machines:
            self._start(machine, Member(id=next(_IDS), host=self.address(machine)))
            kinds = ("etcd-peer", "etcd-serving", "etcd-serving-metrics")
            self.secrets |= {f"{kind}-{node_of(machine.name)}" for kind in kinds}
        self._others = self.world.cluster.respond
        self.world.cluster.respond = self.respond
        self.world.cluster.execute = self.execute
        self.world.nodes.etcd = self.operator

    @staticmethod
    def address(machine: FakeMachine) -> str:
        """Of its node. All machines of a test share the one that SSH answers at."""
        return f"192.0.2.{machine.index}"

    def inputs(self, machine: FakeMachine) -> Json:
        """What an installation is told of a machine with a member."""
        return {**CONTROL_PLANE, "consent": True, "addresses": ["127.0.0.1", self.address(machine)]}

    def healthy(self, member: Member) -> bool:
        """Whether the machine of its node runs with the member's data."""
        found = [machine for machine in self.machines if node_of(machine.name) == member.name]
        return bool(found) and found[0].running == "disk" and self.data[found[0].name] == (found[0].chassis, member.id)

    def operator(self) -> Json:
        """Its clusteroperator, after it has done what there is to do."""
        self._reconcile()
        ill = (member.name or member.host for member in self.members if not self.healthy(member))
        return etcd_operator(*ill, members=len(self.members))

    def respond(self, method: str, path: str, body: Json) -> tuple[int, Json] | None:
        if not path.startswith(NAMESPACE):
            return self._others(method, path, body)
        rest = path.removeprefix(NAMESPACE)
        if rest == "/pods?labelSelector=etcd%3Dtrue":
            return 200, {"items": [self._pod(machine) for machine in self.machines]}
        if rest == "/configmaps/etcd-endpoints":
            return 200, {"data": {f"{member.id:x}": member.host for member in self.members}}
        if method == "DELETE" and rest.startswith("/secrets/"):
            name = rest.rpartition("/")[2]
            there = name in self.secrets
            self.secrets.discard(name)
            return (200, {}) if there else (404, {"message": "not found"})
        return None

    def execute(self, path: str) -> tuple[int, str, str] | None:
        """Code, output and errors of a command in a pod; None where the pod takes none."""
        place = urlsplit(path)
        query = parse_qsl(place.query)
        assert ("container", "etcdctl") in query and ("stdout", "true") in query
        words = [value for key, value in query if key == "command"]
        pod = place.path.split("/")[-2]
        (machine,) = (each for each in self.machines if pod == f"etcd-{node_of(each.name)}")
        if self.broken or not self._serves(machine):
            return None
        match words:
            case ["etcdctl", "member", "list", "-w", "json"]:
                return 0, json.dumps({"header": {}, "members": [self._document(each) for each in self.members]}), ""
            case ["etcdctl", "endpoint", "health", "--cluster", "-w", "json"]:
                told = [
                    {"endpoint": f"https://{each.host}:2379", "health": self.healthy(each)} for each in self.members
                ]
                ill = [each for each in told if not each["health"]]
                return int(bool(ill)), json.dumps(told), "Error: unhealthy cluster\n" if ill else ""
            case ["etcdctl", "member", "remove", member]:
                found = [each for each in self.members if f"{each.id:x}" == member]
                if not found:
                    return 1, "", "Error: etcdserver: member not found\n"
                self.members.remove(found[0])
                self.world.log.append(f"member remove {found[0].name}")
                return 0, f"Member {member} removed\n", ""
            case _:
                return 127, "", f"{words} is not implemented"

    def _reconcile(self) -> None:
        if not all(self.healthy(member) for member in self.members):
            return
        for machine in self.machines:
            member = Member(id=next(_IDS), host=self.address(machine))
            known = any(each.host == member.host for each in self.members)
            if not known and machine.running == "disk" and node_of(machine.name) in self.world.nodes.nodes:
                self._start(machine, member)
                self.world.log.append(f"member add {node_of(machine.name)}")
                return

    def _start(self, machine: FakeMachine, member: Member) -> None:
        """A new member, learner and then voter, on an empty disk."""
        self.members.append(member)
        member.name = node_of(machine.name)
        self.data[machine.name] = (machine.chassis, member.id)

    def _serves(self, machine: FakeMachine) -> bool:
        return any(self.healthy(each) for each in self.members if each.name == node_of(machine.name))

    def _pod(self, machine: FakeMachine) -> Json:
        node = node_of(machine.name)
        ready = {"type": "Ready", "status": str(self._serves(machine))}
        metadata = {"name": f"etcd-{node}", "namespace": "openshift-etcd"}
        return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"conditions": [ready]}}

    def _document(self, member: Member) -> Json:
        told: Json = {"ID": member.id, "peerURLs": [f"https://{member.host}:2380"]}
        return {**told, "name": member.name, "clientURLs": [f"https://{member.host}:2379"]} if member.name else told
