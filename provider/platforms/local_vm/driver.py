"""See `MachineDriver`, for a virtual machine of libvirt."""

from __future__ import annotations

from dataclasses import dataclass

from metal_ipi.provider import boot_tree
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.platforms.contract import Machine, MachineDriver
from metal_ipi.provider.platforms.local_vm import domain
from metal_ipi.provider.platforms.local_vm.domain import Mark
from metal_ipi.provider.platforms.local_vm.ids import MachineId
from metal_ipi.provider.platforms.local_vm.virsh import Virsh
from metal_ipi.provider.resources.ephemeral_machine import LocalVmArgs
from metal_ipi.provider.status import Say, silent

_FROM_STDIN = "/dev/stdin"


@dataclass(frozen=True, kw_only=True)
class _Found:
    """An existing domain."""

    mark: Mark | None
    state: str
    """libvirt's state: running, paused, shut off, ..."""

    def boots(self, script: str) -> bool:
        """Whether it is ours, and was made to boot this script."""
        return self.mark is not None and self.mark.script == script


class LocalVm(MachineDriver[LocalVmArgs]):
    """One virtual machine. It is created paused, and resumed after its script is published: so libvirt's errors come
    before anything is written."""

    def __init__(self, settings: Settings, say: Say | None = None) -> None:
        """`say` shows remarks to the user."""
        self._settings = settings
        self._say = say or silent
        self._virsh = Virsh(settings.libvirt_uri)

    async def find(self, spec: LocalVmArgs) -> list[Machine]:
        # A domain that does not run, or boots something else, is ignored: `create` makes it again.
        found, machine_id = await self._look(spec.domain), MachineId.of(spec)
        if found is None:
            return []
        if found.mark is None or (found.mark.cluster, found.mark.hostname) != (spec.cluster, spec.hostname):
            raise RemoteError(
                f"libvirt at {self._virsh.uri} has a domain {spec.domain} already ({found.state}), which does not "
                "belong to this cluster. Rename or remove it, or use another libvirt (platform.bootstrap.uri)"
            )
        usable = found.boots(machine_id.script) and found.state == "running" and await self._is_published(machine_id)
        return [self._machine(machine_id)] if usable else []

    async def create(self, spec: LocalVmArgs) -> Machine:
        machine_id = MachineId.of(spec)
        self._settings.need_artifacts()
        accelerated = domain.accelerated(await self._virsh.run("capabilities"))
        if accelerated is None:
            raise RemoteError(
                f"libvirt at {self._virsh.uri} cannot run {domain.ARCHITECTURE} machines: install QEMU for them there "
                "(Debian: qemu-system-x86), or use another libvirt (platform.bootstrap.uri)"
            )
        if not accelerated:
            name = spec.domain
            await self._say(f"libvirt at {self._virsh.uri} has no KVM: {name} is emulated, which is many times slower")
        if await self._look(spec.domain) is not None:  # it is ours: `find` has checked that
            await self._virsh.run("destroy", spec.domain)
        mark = Mark(cluster=spec.cluster, hostname=spec.hostname, script=machine_id.script)
        await self._define(spec, domain.xml(spec, mark, accelerated=accelerated))
        try:
            await boot_tree.publish(self._settings, spec.mac, spec.script, spec.chain)
            await self._virsh.run("resume", spec.domain)
        except BaseException:  # no machine may be left that is in no state
            await self._remove(machine_id)
            raise
        return self._machine(machine_id)

    async def get(self, machine_id: str) -> Machine | None:
        machine = MachineId.parse(machine_id)
        if not await self._is_published(machine):
            return None
        found = await self._look(machine.domain)
        running = found is not None and found.boots(machine.script) and found.state == "running"
        return self._machine(machine) if running else None

    async def delete(self, machine_id: str) -> None:
        machine = MachineId.parse(machine_id)
        if await self._is_published(machine):
            await self._remove(machine)

    async def _remove(self, machine: MachineId) -> None:
        found = await self._look(machine.domain)
        if found is not None and found.boots(machine.script):
            await self._virsh.run("destroy", machine.domain)
        # Last: as long as the script exists, a run after a killed one knows that it is not finished.
        await boot_tree.withdraw(self._settings, machine.mac)

    async def _define(self, spec: LocalVmArgs, description: str) -> None:
        try:
            await self._virsh.run("create", _FROM_STDIN, "--paused", stdin=description)
        except RemoteError as error:
            hints = {
                f"'{spec.bridge}'": "platform.bootstrap.bridge must be a bridge there (`ip link show type bridge`)",
                f"'{spec.boot_image}'": "platform.bootstrap.bootImage must be a file there that QEMU may read",
                "allocate memory": "platform.bootstrap.memory may be more than the host has",
            }
            hint = next((f". {text}" for words, text in hints.items() if words in str(error)), "")
            raise RemoteError(f"{spec.domain} cannot be made. {error}{hint}") from None

    async def _look(self, name: str) -> _Found | None:
        if name not in (await self._virsh.run("list", "--all", "--name")).split():
            return None
        described, state = await self._virsh.run("dumpxml", name), await self._virsh.run("domstate", name)
        return _Found(mark=domain.mark_of(described), state=state.strip())

    async def _is_published(self, machine: MachineId) -> bool:
        return await boot_tree.is_published(self._settings, machine.mac, machine.script)

    def _machine(self, machine_id: MachineId) -> Machine:
        return Machine(
            id=str(machine_id),
            hostname=machine_id.domain,
            state="active",
            console=f"virsh --connect {self._virsh.uri} console {machine_id.domain}",
        )
