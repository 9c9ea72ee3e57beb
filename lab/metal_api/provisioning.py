"""The life of a device and of the machine behind it: queued, provisioning, active; off and on; gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lab.machines.base import (
    BackendError,
    BootDevice,
    Disk,
    MachineBackend,
    MachineSpec,
    SurvivesRestart,
)
from lab.metal_api.devices import GONE, Device, add_event, set_state
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.state import Account

_INSTALLING = frozenset({"queued", "provisioning", "reinstalling"})
"""States of a device whose script was not served yet."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long things take that on Metal take minutes; seconds."""

    queued: float = 0.1
    provisioning: float = 0.1
    power: float = 0.5
    deprovisioning: float = 0.2


class Provisioner:
    """One task per device that is on its way from one state to another."""

    def __init__(self, account: Account, machines: MachineBackend, pace: Pace) -> None:
        self._account = account
        self._machines = machines
        self._pace = pace
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def attend(self) -> None:
        """After a restart, as soon as the machines are there: what is up already asks us what it boots."""
        if isinstance(self._machines, SurvivesRestart):
            for identity in self._machines.running() & self._account.table(Device).keys():
                self._machines.attend(identity, self.boots)

    async def resume(self) -> None:
        """After a restart: finish what was under way, switch on what was on."""
        running = self._machines.running() if isinstance(self._machines, SurvivesRestart) else frozenset[str]()
        for device in list(self._account.table(Device).values()):
            if device.state == GONE:
                self._start(device, self._deprovision)
            elif device.state == "reinstalling":
                self._start(device, self._reinstall)
            elif device.state == "queued" or (device.state == "provisioning" and not device.powered):
                self._start(device, self._provision)
            elif device.state == "powering_off":
                self._start(device, self._power_off)
            elif device.powered and device.id not in running:
                self._start(device, self._boot)

    async def close(self) -> None:
        """Stop moving; `resume` goes on from the saved states."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def provision(self, device: Device) -> None:
        """Begin the life of a new device."""
        self._start(device, self._provision)

    def deprovision(self, device: Device) -> None:
        """Begin its end, whatever it was doing."""
        if device.state == GONE:
            return
        set_state(self._account, device, GONE)
        self._account.tables.forget_device(device.id)
        self._account.routes_changed()
        add_event(self._account, device, "instance.deprovisioning", f"{device.hostname} is being deprovisioned")
        self._start(device, self._deprovision)

    def power_off(self, device: Device) -> None:
        """Only an active device can be switched off."""
        self._require(device, "active")
        set_state(self._account, device, "powering_off")
        self._start(device, self._power_off)

    def power_on(self, device: Device) -> None:
        """Only an inactive device can be switched on."""
        self._require(device, "inactive")
        set_state(self._account, device, "powering_on", powered=True)
        add_event(self._account, device, "power.on", f"{device.hostname} is powering on")
        self._start(device, self._boot)

    def reboot(self, device: Device) -> None:
        """Only an active device can be rebooted; it stays active."""
        self._require(device, "active")
        add_event(self._account, device, "power.reboot", f"{device.hostname} rebooted")
        self._start(device, self._boot)

    def reinstall(self, device: Device, *, preserve_data: bool, fast: bool) -> None:
        """Only an active or an inactive device can be reinstalled.

        All disks are wiped; with `preserve_data` only the operating system's, if it is not to go `fast`: then none is.
        """
        if device.state != "inactive":
            self._require(device, "active")
        serials = [disk.serial for disk in spec_of(device).disks]
        device.blanking = [] if fast else serials[:1] if preserve_data else serials
        set_state(self._account, device, "reinstalling", powered=False)
        add_event(self._account, device, "instance.reinstalling", f"{device.hostname} is being reinstalled")
        self._start(device, self._reinstall)

    def script_served(self, device: Device) -> None:
        """The iPXE script was fetched: for a custom_ipxe device that is all provisioning means."""
        if device.state in ("provisioning", "reinstalling"):
            add_event(self._account, device, "provisioning.109", "Installation finished, rebooting server")
            set_state(self._account, device, "active")
            add_event(self._account, device, "provisioning.110", "Provision complete! Your device is ready to go.")
        elif device.state == "powering_on":
            set_state(self._account, device, "active")

    def boots(self, machine_id: str) -> tuple[BootDevice, ...]:
        """The network until it got its script, then its disk; a device with `always_pxe` the network, ever."""
        device = self._account.table(Device).get(machine_id)
        if device is None or device.always_pxe or device.state in _INSTALLING:
            return ("network",)
        return ("disk",)

    def _require(self, device: Device, state: str) -> None:
        if device.state != state:
            raise Unprocessable(f"Device must be {state} to perform this action; it is {device.state}")

    def _start(self, device: Device, work: Callable[[Device], Awaitable[None]]) -> None:
        """Replace what the device was doing: a deletion in the middle of provisioning wins."""
        previous = self._tasks.get(device.id)

        async def run() -> None:
            if previous is not None and not previous.done():
                previous.cancel()
                await asyncio.gather(previous, return_exceptions=True)
            await work(device)

        task = asyncio.get_running_loop().create_task(run(), name=f"device {device.hostname}")
        self._tasks[device.id] = task
        task.add_done_callback(lambda done: self._finished(device, done))

    def _finished(self, device: Device, task: asyncio.Task[None]) -> None:
        if self._tasks.get(device.id) is task:
            del self._tasks[device.id]
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, BackendError):
            add_event(self._account, device, "instance.failed", f"{device.hostname} failed: {error}", "failed")
            set_state(self._account, device, "failed", powered=False)
        elif error is not None:
            raise error

    async def _provision(self, device: Device) -> None:
        account = self._account
        await account.clock.sleep(self._pace.queued)
        set_state(account, device, "provisioning")
        add_event(account, device, "provisioning.101", "Provisioning started")
        add_event(account, device, "provisioning.102", "Network configured")
        await account.clock.sleep(self._pace.provisioning)
        add_event(account, device, "provisioning.103", "Configuration written, restarting device")
        set_state(account, device, "provisioning", powered=True)
        await self._boot(device)

    async def _reinstall(self, device: Device) -> None:
        await self._machines.blank(device.id, device.blanking)
        device.blanking = []
        await self._account.clock.sleep(self._pace.provisioning)
        set_state(self._account, device, "reinstalling", powered=True)
        await self._boot(device)

    async def _boot(self, device: Device) -> None:
        await self._machines.power_on(spec_of(device), self.boots)
        if device.state == "powering_on" and not device.always_pxe:
            set_state(self._account, device, "active")  # no script is served, which would tell

    async def _power_off(self, device: Device) -> None:
        await self._machines.power_off(device.id)
        await self._account.clock.sleep(self._pace.power)
        set_state(self._account, device, "inactive", powered=False)
        add_event(self._account, device, "power.off", f"{device.hostname} is powered off")

    async def _deprovision(self, device: Device) -> None:
        await self._machines.delete(device.id)
        await self._account.clock.sleep(self._pace.deprovisioning)
        self._account.table(Device).pop(device.id, None)


def spec_of(device: Device) -> MachineSpec:
    """The specification of a device for the back end."""
    plan = device.hardware
    return MachineSpec(
        id=device.id,
        hostname=device.hostname,
        mac=device.mac,
        addresses=tuple(device.addresses),
        memory_mib=plan.memory_mib,
        cpus=plan.cpus,
        architecture=plan.architecture,
        disks=tuple(
            Disk(serial=f"{device.id[-12:]}{number}", size_mib=drive.mib, rotational=drive.kind == "HDD")
            for number, drive in enumerate(plan.drives)
        ),
    )
