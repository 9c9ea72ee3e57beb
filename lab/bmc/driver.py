"""sushy-tools' systems driver over one server. Its methods run in request threads, the server in the event loop."""

# pyright: reportIncompatibleMethodOverride=false
# What AbstractSystemsDriver does not implement is taken to return nothing at all.

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sushy_tools import error
from sushy_tools.emulator.resources.systems.base import AbstractSystemsDriver

from lab.bmc.faults import Refused
from lab.bmc.server import BIOS, Override, Server
from lab.bmc.work import BIOS as FIRMWARE
from lab.machines.base import BackendError, MachineSpec, cards

_SECONDS = 60.0
_T = TypeVar("_T")


class Loop:
    """Runs coroutines of request threads in the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run it in the event loop, and wait for the result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)


class SystemsDriver(AbstractSystemsDriver):
    """One system. What it refuses becomes a Redfish error."""

    def __init__(self, server: Server, spec: MachineSpec, loop: Loop) -> None:
        self._server = server
        self._spec = spec
        self._loop = loop

    @property
    def driver(self) -> str:
        """The driver's name."""
        return "<lab>"

    @property
    def systems(self) -> list[str]:
        """Its UUID."""
        return [self._spec.id]

    def uuid(self, identity: str) -> str:
        """The UUID of the requested system, if it is this one."""
        if identity != self._spec.id:
            raise error.NotFound(f"System {identity} was not found")
        return identity

    def name(self, identity: str) -> str:
        """Its name in the rack."""
        self.uuid(identity)
        return self._server.identity.name

    def get_power_state(self, identity: str) -> str:
        """On or Off."""
        return self._loop.call(self._server.power()).capitalize()

    def set_power_state(self, identity: str, state: str) -> None:
        """A reset."""
        self.uuid(identity)
        self._done(self._server.reset(state))

    def get_boot_device(self, identity: str) -> str:
        """The override's target; Redfish's rest of it is added around the application."""
        return self._server.settings.override.target

    def set_boot_device(self, identity: str, boot_source: str) -> None:
        """Set a permanent override, as sushy-tools does."""
        self._change(lambda: self._server.set_override(Override(enabled="Continuous", target=boot_source)))

    def get_boot_mode(self, identity: str) -> str:
        """Legacy or UEFI."""
        return self._server.settings.mode

    def set_boot_mode(self, identity: str, boot_mode: str) -> None:
        """Takes effect at the next start."""
        self._change(lambda: self._server.set_mode(boot_mode))

    def get_secure_boot(self, identity: str) -> bool:
        """Whether it is on at the next start. It can be only in UEFI mode (DMTF's schema SecureBoot); what real BMCs
        answer in BIOS mode was not seen."""
        return self._server.settings.secure_boot

    def set_secure_boot(self, identity: str, secure: bool) -> None:
        """On or off from the next start on."""
        self._change(lambda: self._server.set_secure_boot(secure))

    def get_total_memory(self, identity: str) -> float:
        """The memory that the BMC reports, in GiB."""
        return self._server.settings.told.memory_gib or 0

    def get_total_cpus(self, identity: str) -> int:
        """Sockets."""
        return 1

    def get_processors(self, identity: str) -> list[dict[str, Any]]:
        """One socket with all reported CPUs, as in the system's ProcessorSummary."""
        cpus = self._server.settings.told.cpus
        cpu = {"model": "QEMU Virtual CPU", "vendor": "Lab", "cores": str(cpus // 2 or 1), "threads": str(cpus)}
        return [{"id": "CPU0", "socket": "CPU 0", **cpu}]

    def get_versions(self, identity: str) -> dict[str, str]:
        """Of the firmware."""
        return {"BiosVersion": self._server.settings.work.versions[FIRMWARE]}

    def get_bios(self, identity: str) -> dict[str, str]:
        """The firmware's settings."""
        return self._server.settings.bios

    def set_bios(self, identity: str, attributes: dict[str, str]) -> None:
        """Takes effect at the next start."""
        self._change(lambda: self._server.set_bios(attributes))

    def reset_bios(self, identity: str) -> None:
        """Restore the factory settings; takes effect at the next start."""
        self._change(lambda: self._server.set_bios(BIOS))

    def get_nics(self, identity: str) -> list[dict[str, str]]:
        """Network interfaces, called by their MAC addresses."""
        self.uuid(identity)
        return [{"id": mac, "mac": mac} for mac in cards(self._spec).values()]

    def get_simple_storage_collection(self, identity: str) -> dict[str, Any]:
        """One controller with all disks."""
        told = self._server.settings.told
        devices = [
            {"Name": disk.serial, "CapacityBytes": told.disk_bytes(self._spec, number)}
            for number, disk in enumerate(self._spec.disks)
        ]
        return {"scsi": {"Id": "scsi", "Name": "scsi", "DeviceList": devices}} if devices else {}

    def get_boot_image(self, identity: str, device: str) -> tuple[str | None, bool, bool]:
        """The image in the virtual drive."""
        image = self._server.settings.medium if device == "Cd" else ""
        return image or None, True, bool(image)

    def set_boot_image(
        self, identity: str, device: str, boot_image: str | None = None, write_protected: bool = True
    ) -> None:
        """Insert an image, or remove it."""
        if device != "Cd":
            raise error.NotSupportedError(f"there is no virtual {device}, only a Cd")
        self._change(lambda: self._server.set_medium(boot_image or ""))

    def get_http_boot_uri(self, identity: str) -> str:
        """The URL of a UefiHttp boot."""
        return self._server.settings.override.uri

    def _change(self, change: Callable[[], None]) -> None:
        async def changed() -> None:
            change()

        self._done(changed())

    def _done(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            self._loop.call(work)
        except Refused as refusal:
            raise error.BadRequest(str(refusal)) from refusal
        except BackendError as problem:
            raise error.FishyError(str(problem)) from problem
