"""A machine with a disk, a live system and SSH on loopback, a BMC's driver, and a cluster with its node and pods."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import asyncssh

from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.resources.installation import BEING_INSTALLED
from tests.provider import ssh_servers as ssh
from tests.provider.knot import free_port

Json = dict[str, Any]
_VERSIONS = itertools.count(1)
_IDENTITY = ("uid", "resourceVersion")
LIVE, DISK, CLIENT, STRANGER = ssh.key(), ssh.key(), ssh.key(), ssh.key()
CLUSTER = "lab.facility.test"
_BOOT_SECONDS = 0.005
_REBASE_SECONDS = 0.02


def node_of(name: str) -> str:
    """A machine's full name."""
    return f"{name}.{CLUSTER}"


@dataclass
class FakeMachine:
    """What it does is in `log`, which tests share among machines and cluster to see the order of things."""

    name: str
    log: list[str]
    boot_tree: Path
    """Where its script is looked for when it boots from the network."""
    index: int = 0
    disk: str | None = None
    """Generation that is installed."""
    joined: bool = False
    """Whether what is on disk has been part of the cluster."""
    running: str = "off"
    wanted: str = ""
    """Generation that the live system installs."""
    statuses: list[Json] = field(default_factory=lambda: [{"state": "waiting"}, {"state": "installing"}])
    """What the installer says, look by look; then it is done."""
    power_losses: int = 0
    """How often it loses its power in the middle of an installation."""
    journals: list[str] = field(default_factory=list[str])
    """What its installer's journal ends with, live system by live system: those fail without a word."""
    clock: float = 0.0
    """How many seconds its clock is ahead."""
    fails: dict[str, str] = field(default_factory=dict[str, str])
    """Part of what it is told to run, and what it says when that fails."""
    changed: Callable[[FakeMachine], None] = lambda machine: None
    """Called when something else runs."""
    rebases: bool = False
    """Whether its first boot from a new disk ends in a restart, into another operating system, as OpenShift's does."""
    first_boot: str = "finished"
    """How far that is; `pending`, `restarting` and `restarted` as provider/gates/first_boot.py has them."""
    chassis: str = field(default_factory=lambda: str(uuid.uuid4()))
    """What ovn-kubernetes calls it: another one with each installation."""
    port: int = field(default_factory=free_port)
    boot_id: str = ""
    installs: int = 0
    not_after: int | None = None
    """What the kernel's command line of its live system says."""
    recorded: str | None = None
    """The disk that it says."""
    _kexeced: str = ""
    _journal: str | None = None
    _left: list[Json] = field(default_factory=list[Json])
    _server: Any = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def mac(self) -> str:
        return f"52:54:00:00:00:{self.index:02x}"

    @property
    def script(self) -> Path:
        return self.boot_tree / f"mac-{self.mac.replace(':', '-')}.ipxe"

    @property
    def published(self) -> bool:
        return bool(self.told)

    @property
    def told(self) -> str:
        """What it finds when it boots from the network."""
        return self.script.read_text() if self.script.exists() else ""

    async def start(self, what: str) -> None:
        """Runs something else: `live`, `disk`, `stranger`, or `off`. Waits for a start that is under way."""
        async with self._starting:
            await self._start(what)

    async def _start(self, what: str) -> None:
        if self._server is not None:
            for listening in self._server.sockets:
                asyncio.get_running_loop().remove_reader(listening)
            await asyncio.sleep(0)  # whom it has accepted becomes a connection: Python 3.11 would forget it, open
            self._server.close()
            await self._server.wait_closed()
            self._server = None
        self.running, self.boot_id = what, str(uuid.uuid4())
        self.changed(self)
        if what == "live":
            told = self._kexeced or self.told
            said = re.search(r"metal-ipi\.not-after=(\d+)", told)
            self.not_after, self._kexeced = int(said[1]) if said else None, ""
            said = re.search(r"metal-ipi\.device=([^\s']*)", told)
            self.recorded = said[1] if said else None
            self._journal = self.journals.pop(0) if self.journals else None
            self._left = [dict(status) for status in self.statuses]
            if self.disk == self.wanted:
                self._left = []  # the installer finds it on the disk, and wipes nothing
        keys = {"live": LIVE, "disk": DISK, "stranger": STRANGER}
        if what in keys:
            self._server = await asyncssh.listen(
                "127.0.0.1",
                self.port,
                server_host_keys=[keys[what]],
                authorized_client_keys=asyncssh.import_authorized_keys(ssh.public(CLIENT)),
                process_factory=partial(self._session, self.boot_id),
            )
        if what == "disk" and self.first_boot == "pending":
            self._later(self._rebase())

    async def _rebase(self) -> None:
        """What machine-config-daemon-firstboot.service does."""
        boot_id = self.boot_id
        for state in ("restarting", "restarted"):
            await asyncio.sleep(_REBASE_SECONDS)
            if self.boot_id != boot_id or self.running != "disk":
                return
            self.first_boot = state
        await self.start("disk")

    def later(self, what: str) -> None:
        """Boots something else in the background, as a machine does."""

        async def boot() -> None:
            await asyncio.sleep(_BOOT_SECONDS)
            await self.start(what)

        self._later(boot())

    def _later(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        await asyncio.gather(*self._tasks)
        await self.start("off")

    async def _session(self, boot_id: str, process: asyncssh.SSHServerProcess[str]) -> None:
        command = str(process.command)
        given = await process.stdin.read() if command.endswith(" -s") else ""
        if boot_id != self.boot_id:  # the system that was logged in to is gone, and does not speak for the next one
            process.get_extra_info("connection").abort()
            return
        status, text = self._run(command, given)
        process.stdout.write(text)
        process.exit(status)

    def _run(self, command: str, given: str) -> tuple[int, str]:
        for part, said in self.fails.items():
            if part in command + given:
                return 1, said
        if command.startswith("cat /proc"):
            so = self._journal is not None if "is-failed --quiet metal-ipi-install" in command else self.joined
            words = ["yes" if so else "no", *([self.first_boot] if self.running == "disk" else [])]
            return 0, f"{self.boot_id}\n{' '.join(words)}\n{json.dumps(self._document())}\n"
        if "journalctl" in command:
            return 0, self._journal or ""
        if "kexec -l" in given:
            self.log.append(f"kexec {self.name}")
            self._kexeced = given
            self.later("live")
        elif "systemctl reboot" in given:
            self.log.append(f"reboot {self.name}")
            self.later("live" if self.published else "disk")
        elif command == "sudo -n sh -s":
            self.log.append(f"pre-reboot {self.name}: {given}")
        elif command == "bash -s" and self.first_boot in ("pending", "restarting"):
            return 1, "os-version: read 'the boot image'"
        elif command == "bash -s":
            self.log.append(f"check {self.name}")
        else:
            return 127, f"{command} is not implemented"
        return 0, ""

    def _document(self) -> Json:
        if self.running == "live" and self._journal is not None:
            return self.statuses[0] if self.statuses else {}
        if self.running != "live":
            return {"cluster": CLUSTER, "machine": node_of(self.name), "generation": self.disk} if self.disk else {}
        if self.disk != self.wanted and self.not_after is not None and time.time() + self.clock > self.not_after:
            return {"generation": self.wanted, "state": "expired", "reason": "it was valid until then", "remedy": "Up."}
        if self.power_losses and len(self._left) == 1:
            self.power_losses -= 1
            self.disk = None
            self.log.append(f"power loss {self.name}")
            self._later(self.start("off"))
        if self._left:
            said = self._left[0] if self._left[0]["state"] == "failed" else self._left.pop(0)
            return {"generation": self.wanted, **said}
        if self.disk != self.wanted:
            self.installs += 1
            self.log.append(f"install {self.name}")
            self.disk, self.joined, self.chassis = self.wanted, False, str(uuid.uuid4())
            self.first_boot = "pending" if self.rebases else "finished"
        return {"state": "done", "generation": self.wanted, "device": "/dev/vda", "stable": "/dev/disk/by-id/virtio-1"}


@dataclass
class FakeDriver:
    """A driver whose BMCs do as they are told, unless a test says otherwise."""

    machines: dict[str, FakeMachine] = field(default_factory=dict[str, FakeMachine])
    silent: bool = False
    slow: bool = False
    """Whether it takes a minute to tell of the power."""
    ignores: int = 0
    """How often it passes over its one-time boot."""

    async def __aenter__(self) -> FakeDriver:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    def _machine(self, machine_id: str) -> FakeMachine:
        if self.silent:
            raise RemoteError(f"server {machine_id} (BMC https://10.0.0.1) does not answer: is it plugged in?")
        return self.machines[machine_id.partition("/")[0]]

    async def boot_installer(self, machine_id: str, mac: str) -> None:
        machine = self._machine(machine_id)
        assert mac == machine.mac
        machine.log.append(f"network boot {machine.name}")
        self.ignores -= 1
        machine.later("live" if machine.published and self.ignores < 0 else "disk")

    async def boot_disk(self, machine_id: str) -> None:
        self._machine(machine_id).log.append(f"boot disk {self._machine(machine_id).name}")

    async def power_state(self, machine_id: str) -> str:
        await asyncio.sleep(60 if self.slow else 0)
        return "Off" if self._machine(machine_id).running == "off" else "On"

    async def restart(self, machine_id: str) -> None:
        machine = self._machine(machine_id)
        machine.log.append(f"restart {machine.name}")
        machine.later("live" if machine.published else "disk")


@dataclass
class FakeNodes:
    """Nodes and pods of a cluster: answers `FakeCluster.respond`."""

    log: list[str]
    nodes: dict[str, Json] = field(default_factory=dict[str, Json])
    removed: list[str] = field(default_factory=list[str])
    """Names of nodes whose objects were removed."""
    config_maps: dict[str, Json] = field(default_factory=dict[str, Json])
    """Of kube-system."""
    pods: list[Json] = field(default_factory=list[Json])
    budgets: dict[str, str] = field(default_factory=dict[str, str])
    """Pods that may not be evicted, and what the cluster says of their budgets."""
    etcd: Callable[[], Json] | None = None
    """Makes the cluster operator of etcd, where there is one."""

    def add(self, name: str, *, ready: bool = True, **spec: Any) -> None:
        """As a worker's kubelet makes it."""
        labels = {"kubernetes.io/hostname": name, "node-role.kubernetes.io/worker": ""}
        metadata = {"name": name, "uid": str(uuid.uuid4()), "labels": labels, "annotations": {}}
        self.nodes[name] = {"metadata": metadata, "spec": spec, "status": {}}
        self._touch(self.nodes[name])
        self.set_ready(name, ready=ready)

    def kubelet(self, machine: FakeMachine) -> None:
        """What a machine that runs from its disk tells of itself: it makes its node where there is none.

        ovn-kubernetes writes the machine's chassis-id on the node; its admission refuses another one, and the node has
        no network then.
        """
        name = node_of(machine.name)
        if name not in self.nodes:
            self.add(name)
            if name in self.removed:
                self.log.append(f"register {name}")
        chassis = self.nodes[name]["metadata"]["annotations"].setdefault("k8s.ovn.org/node-chassis-id", machine.chassis)
        self.set_ready(name, ready=chassis == machine.chassis, boot_id=machine.boot_id)

    def set_ready(self, name: str, *, ready: bool, boot_id: str = "") -> None:
        conditions = [{"type": "Ready", "status": "True" if ready else "Unknown", "message": "why"}]
        self.nodes[name]["status"] = {"conditions": conditions, "nodeInfo": {"bootID": boot_id}}
        self._touch(self.nodes[name])

    def _touch(self, document: Json) -> None:
        document["metadata"]["resourceVersion"] = str(next(_VERSIONS))

    def pod(self, name: str, node: str, *, owner: str | None = "ReplicaSet", phase: str = "Running") -> Json:
        owners = [{"kind": owner, "controller": True}] if owner else []
        metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "ownerReferences": owners}
        pod = {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}
        self.pods.append(pod)
        return pod

    def respond(self, method: str, path: str, body: Json) -> tuple[int, Json] | None:
        parts = path.strip("/").split("/")
        match (method, parts):
            case ("GET", ["api", "v1", "nodes"]):
                return 200, {"items": list(self.nodes.values())}
            case ("GET", ["api", "v1", "nodes", name]):
                return (200, self.nodes[name]) if name in self.nodes else (404, {"message": "not found"})
            case ("PATCH", ["api", "v1", "nodes", name]):
                if self._conflicts(self.nodes[name], body.get("metadata") or {}):
                    return 409, {"message": "the object has been modified"}
                self._merge(self.nodes[name], body)
                self._touch(self.nodes[name])
                if "metal-ipi/cordoned" in (body["metadata"].get("annotations") or {}):
                    self.log.append(f"{'cordon' if body['spec']['unschedulable'] else 'uncordon'} {name}")
                elif body["metadata"].get("labels") not in ({BEING_INSTALLED: ""}, {BEING_INSTALLED: None}):
                    self.log.append(f"put back {name}")
                return 200, self.nodes[name]
            case ("DELETE", ["api", "v1", "nodes", name]):
                if name not in self.nodes:
                    return 404, {"message": "not found"}
                if self._conflicts(self.nodes[name], body["preconditions"]):
                    return 409, {"message": "the object has been modified"}
                if self.nodes[name]["metadata"].get("finalizers"):
                    self.nodes[name]["metadata"]["deletionTimestamp"] = "now"
                    return 200, {}
                del self.nodes[name]
                self.removed.append(name)
                self.log.append(f"remove {name}")
                return 200, {}
            case (_, ["api", "v1", "namespaces", "kube-system", "configmaps", *rest]):
                return self._config_map(method, rest[0] if rest else body["metadata"]["name"], body)
            case ("GET", ["api", "v1", query]) if query.startswith("pods?fieldSelector=spec.nodeName%3D"):
                node = query.rpartition("%3D")[2]
                return 200, {"items": [pod for pod in self.pods if pod["spec"]["nodeName"] == node]}
            case ("POST", ["api", "v1", "namespaces", "shop", "pods", name, "eviction"]):
                assert body["apiVersion"] == "policy/v1" and body["deleteOptions"]["preconditions"]["uid"]
                if name in self.budgets:
                    causes = [{"reason": "DisruptionBudget", "message": self.budgets[name]}]
                    return 429, {"message": "Cannot evict pod.", "details": {"causes": causes}}
                self.pods = [pod for pod in self.pods if pod["metadata"]["name"] != name]
                self.log.append(f"evict {name}")
                return 201, {}
            case ("GET", ["apis", "config.openshift.io", "v1", "clusteroperators", "etcd"]):
                return (200, self.etcd()) if self.etcd else (404, {"message": "not found"})
            case ("GET", ["apis", "certificates.k8s.io", *_]):
                return 404, {}
            case _:
                return None

    def _config_map(self, method: str, name: str, body: Json) -> tuple[int, Json]:
        there = name in self.config_maps
        if method == "POST" and there:
            return 409, {"message": "already exists"}
        if method != "POST" and not there:
            return 404, {"message": "not found"}
        if method == "DELETE":
            return 200, self.config_maps.pop(name)
        if method != "GET":
            self.config_maps[name] = body
        return 200, self.config_maps[name]

    @staticmethod
    def _conflicts(document: Json, conditions: Json) -> bool:
        return any(document["metadata"][key] != conditions[key] for key in _IDENTITY if key in conditions)

    def _merge(self, document: Json, patch: Json) -> None:
        for key, value in patch.items():
            if value is None:
                document.pop(key, None)
            elif isinstance(value, dict):
                self._merge(document.setdefault(key, {}), value)
            else:
                document[key] = value
