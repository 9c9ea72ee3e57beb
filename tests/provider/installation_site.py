"""Machines, their BMCs, an artifact host and a cluster, and the resource `Installation` over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InitFailed
from metal_ipi.provider.installation import Installation, Pace
from metal_ipi.provider.installation.remote import Opener
from metal_ipi.provider.resource import Context, Values, at_once
from metal_ipi.provider.status import Status
from tests.provider import ssh_servers as ssh
from tests.provider.fake_cluster import FakeCluster
from tests.provider.fake_machine import CLIENT, CLUSTER, DISK, LIVE, FakeDriver, FakeMachine, FakeNodes, node_of
from tests.provider.harness import RecordedLog, settings_of, until

OLD, NEW = "0" * 16, "1" * 16
RECORDED = "/dev/disk/by-id/virtio-1"
DIRECTORY = "an-unguessable-directory"
PACE = Pace(
    look=2.0, gather=30.0, patience=20.0, entry=40.0, leave=20.0, vanished=10.0, power=4.0, answer=0.2, cluster=10.0
)
CONTROL_PLANE: dict[str, Any] = {"role": "control-plane", "pool": "control-plane"}
"""Inputs of its machines."""
UNFINISHED: dict[str, Any] = {"generation": "", "installedAt": None, "device": None, "via": None}
"""What the state knows of an installation that failed."""
UPLOAD_HOST = ssh.key()


@dataclass
class Site:
    """What a test has to do with. Times of its pace pass without waiting (`no_waiting`)."""

    artifacts: Path
    settings: Settings
    cluster: FakeCluster
    platform: str = "redfish"
    log: list[str] = field(default_factory=list[str])
    driver: FakeDriver = field(default_factory=FakeDriver)
    told: RecordedLog = field(default_factory=RecordedLog)
    machines: list[FakeMachine] = field(default_factory=list[FakeMachine])
    states: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Outputs by machine, as the engine would keep them."""
    may_leave: Callable[[str], Awaitable[str]] = at_once

    def __post_init__(self) -> None:
        self.opener: Opener = lambda platform, settings, status: self.driver
        self.nodes = FakeNodes(self.log)
        self.cluster.respond = self.nodes.respond
        self.cluster.answers.clear()
        self.item = self.another_run()

    def another_run(self) -> Installation:
        """The plugin of the next update: it remembers nothing."""
        self.item = Installation(PACE, self.opener)
        return self.item

    async def killed(self, machine: FakeMachine, so: Callable[[], bool], later: float = 0.0, **more: Any) -> None:
        """An `up` that is ended wherever it is, so many seconds after something is so. Another plugin does the next."""
        task = asyncio.ensure_future(self.up(machine, **more))
        await until(so)
        await asyncio.wait([task], timeout=later)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.another_run()

    async def machine(self, name: str, *, installed: str | None = None, ready: bool = True) -> FakeMachine:
        """A new machine, off; or one that runs a generation, with its node in the cluster."""
        machine = FakeMachine(name, self.log, self.artifacts / "boot", len(self.machines) + 1, wanted=NEW)
        machine.changed = self._changed
        self.machines.append(machine)
        self.driver.machines[name] = machine
        self.upload(machine)
        if installed:
            self.nodes.add(node_of(name), ready=ready)
            machine.disk, machine.joined = installed, True
            self.states[name] = {"generation": installed, "installedAt": "then", "device": RECORDED, "via": "order"}
            await machine.start("disk")
        return machine

    async def control_plane(self, count: int = 3) -> list[FakeMachine]:
        """Its machines, as they were installed long ago."""
        return [await self.machine(f"control-plane-{number}", installed=OLD) for number in range(count)]

    def _changed(self, machine: FakeMachine) -> None:
        """What the cluster sees of a machine; one that runs the new generation joins, once its first boot is over."""
        node = node_of(machine.name)
        installed = machine.disk == machine.wanted and machine.first_boot not in ("pending", "restarting")
        if machine.running == "disk" and (machine.joined or installed):
            self.nodes.kubelet(machine)
        elif node in self.nodes.nodes:
            self.nodes.set_ready(node, ready=False, boot_id=machine.boot_id)

    def upload(self, machine: FakeMachine) -> None:
        """What the machine's Artifacts do before."""
        folder = self.artifacts / DIRECTORY
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{machine.name}.ign").write_text("{}")

    def uploaded(self) -> list[str]:
        """All files on the artifact host."""
        return sorted(str(path.relative_to(self.artifacts)) for path in self.artifacts.rglob("*") if path.is_file())

    def silent_cluster(self) -> dict[str, Any]:
        """Inputs by which nobody can be asked."""
        return {"credentials": {**self.cluster.spec(), "url": "https://127.0.0.1:1"}}

    def inputs(self, machine: FakeMachine, **more: Any) -> dict[str, Any]:
        """A job for the new generation."""
        live = {"url": "https://mirror.test/live", "sha256": "ab" * 32}
        return {
            "platform": self.platform,
            "machineId": f"{machine.name}/uuid",
            "hostname": machine.name,
            "node": node_of(machine.name),
            "role": "worker",
            "pool": "workers",
            "cluster": CLUSTER,
            "generation": NEW,
            "runs": {
                "release": "9.6",
                "kernelArguments": ["a=b"],
                "consoles": [],
                "ignition": "abc",
                "installDevice": {"smallest": True},
            },
            "address": "127.0.0.1",
            "port": machine.port,
            "hostKey": ssh.public(DISK),
            "liveHostKey": ssh.public(LIVE),
            "privateKey": ssh.private(CLIENT),
            "live": {"kernel": live, "initramfs": live, "arguments": ["ignition.config.url=http://secret.test/x"]},
            "mac": machine.mac,
            "script": "#!ipxe\nkernel https://mirror.test/live initrd=main\nboot\n",
            "chain": "#!ipxe\nchain\n",
            "artifacts": [{"directory": DIRECTORY, "files": [f"{machine.name}.ign"], "hashes": {}}],
            "members": [node_of(each.name) for each in self.machines],
            "credentials": self.cluster.spec(),
            "drainTimeoutSeconds": 10,
            "expected": {"EXPECTED_HOSTNAME": "look-around"},
            "timeoutSeconds": 240,
            **more,
        }

    def context(self, name: str) -> Context:
        urn = f"urn:pulumi:test::metal-ipi::metal-ipi:index:Installation::{name}"
        return Context(urn=urn, settings=self.settings, status=Status(self.told, urn), may_leave=self.may_leave)

    async def up(self, machine: FakeMachine, **more: Any) -> Values:
        """Creates or updates, and keeps the state as the engine does."""
        inputs, name = self.inputs(machine, **more), machine.name
        assert self.item.check(inputs) == []
        try:
            if name not in self.states:
                self.states[name] = dict((await self.item.create(self.context(name), inputs)).outputs)
            else:
                old = {**inputs, **self.states[name]}
                self.states[name] = dict(await self.item.update(self.context(name), "id", old, inputs))
        except InitFailed as error:
            self.states[name] = error.outputs
            raise
        return self.states[name]


@asynccontextmanager
async def installation_site(folder: Path, cluster: FakeCluster) -> AsyncGenerator[Site, None]:
    """A site whose machines end with it."""
    async with ssh.artifact_host(folder, UPLOAD_HOST, CLIENT) as section:
        bmc = {"address": "https://10.0.0.1", "username": "operator", "password": "pass"}
        bmcs = {f"{role}-{number}": bmc for role in ("worker", "control-plane") for number in range(5)}
        settings = settings_of(artifacts=section, bmcs=bmcs)
        site = Site(artifacts=folder / "artifacts", settings=settings, cluster=cluster)
        try:
            yield site
        finally:
            for machine in site.machines:
                await machine.close()
