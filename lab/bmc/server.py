"""One server behind its BMC: its power, what it boots next, and its firmware's settings. It survives a restart.

The boot order that the back end reads at a reset (`order`) and the values in Redfish are one state, so a one-time boot
is used up exactly when the machine's firmware would use it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from lab.bmc.faults import Faults, Refused
from lab.bmc.identity import Server as Identity
from lab.bmc.told import Told
from lab.bmc.work import Job, Volume, Work
from lab.layout import write_private
from lab.live_iso.reader import Reader
from lab.live_iso.writer import DiscError
from lab.machines.base import BackendError, BootDevice, BootOrder, MachineSpec, Power, RackBackend, SurvivesRestart

TARGETS = ("None", "Pxe", "Cd", "Hdd", "UefiHttp")
ENABLED = ("Disabled", "Once", "Continuous")
MODES = ("Legacy", "UEFI")
RESETS = ("On", "ForceOn", "ForceOff", "GracefulShutdown", "ForceRestart")
_DISK: tuple[BootDevice, ...] = ("disk", "network")
_NETWORK: tuple[BootDevice, ...] = ("network", "disk")
BIOS = {"ProcHyperthreading": "Enabled", "ProcVirtualization": "Disabled", "NumaGroupSizeOpt": "Flat"}
"""The firmware's settings as they leave the factory; names and values are like a vendor's."""
_SELF_TEST_SECONDS = 2.0

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Override:
    """DSP0266's boot source override."""

    enabled: str = "Disabled"
    target: str = "None"
    uri: str = ""
    """The URL of a UefiHttp boot; empty: the one that DHCP names."""
    virtual: bool = False
    """Whether a boot from Cd was requested by Dell's own call; otherwise an iDRAC boots the physical drive of the
    server."""


@dataclass(kw_only=True)
class Settings:
    """The data that are stored on disk."""

    powered: bool = False
    """Whether it should have power; this is restored after a power loss."""
    mode: str = "Legacy"
    override: Override = field(default_factory=Override)
    medium: str = ""
    """The file of the image in the virtual drive."""
    secure_boot: bool = False
    """Whether Secure Boot is on from the next start on."""
    secure_boot_now: bool = False
    """Whether Secure Boot has been on since the last start."""
    told: Told = field(default_factory=Told)
    bios: dict[str, str] = field(default_factory=lambda: dict(BIOS))
    """The firmware's own settings, since the last start."""
    bios_next: dict[str, str] = field(default_factory=dict[str, str])
    """The settings after the next start."""
    work: Work = field(default_factory=Work)
    dell: bool = False
    """Whether the BMC is an iDRAC; see lab.bmc.dell."""
    reset_at: float = 0.0
    boots: list[str] = field(default_factory=list[str])
    """The boot order at each of the last resets, first device first."""


class Server:
    """All methods that change something run in the service's event loop."""

    def __init__(self, identity: Identity, spec: MachineSpec, backend: RackBackend, path: Path) -> None:
        """`path` is the file that keeps its settings."""
        self.identity = identity
        self.faults = Faults()
        self.lost_power = False
        """Server and BMC have no mains power."""
        self._spec = spec
        self._backend = backend
        self._path = path
        self.settings = _load(path)
        self._reported: tuple[Power, float] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def resume(self) -> None:
        """Restore the power state, after the back end was opened."""
        if not self.settings.powered:
            return
        backend = self._backend
        if isinstance(backend, SurvivesRestart) and self._spec.id in backend.running():
            backend.attend(self._spec.id, self.order)
        else:
            await self._boot()

    async def power(self) -> Power:
        """Whether the server has power, as its BMC sees it."""
        actual = await self._backend.power_state(self._spec.id)
        if not self.lost_power and self.settings.powered != (actual == "on"):
            self.settings.powered = actual == "on"
            self._save()
        stale = self.faults.find("stale_power")
        now = time.monotonic()
        if stale is not None and self._reported is not None and self._reported[0] != actual:
            before, since = self._reported
            if now < since + (stale.seconds or 0):
                return before
        self._reported = (actual, now)
        return actual

    async def reset(self, kind: str) -> None:
        """Do what a Redfish ResetType says; raises Refused and BackendError."""
        if kind not in RESETS:
            raise Refused(f"ResetType {kind!r} is not one of {', '.join(RESETS)}")
        if self._reported is None:
            await self.power()
        if self.lost_power:
            raise Refused(f"{self.identity.name} has no mains")
        on = await self._backend.power_state(self._spec.id) == "on"
        if kind in {"On", "ForceOn"} and not on:
            await self._boot()
        elif kind == "ForceOff":
            await self._cut()
        elif kind == "ForceRestart" and on:
            await self._boot()
        elif kind == "GracefulShutdown" and on and self.faults.strike("deaf_shutdown") is None:
            await self._backend.shutdown(self._spec.id)

    async def lose_power(self, seconds: float) -> None:
        """Cut the mains, of the BMC, too. When they are back, the server has power if it had (LastState)."""
        powered = await self.power() == "on"
        self.lost_power = True
        await self._backend.power_off(self._spec.id)
        self.settings.powered = powered
        self._save()
        self._spawn(self._mains_back(seconds))

    def set_override(self, wanted: Override) -> None:
        """What to boot from next; raises Refused."""
        if wanted.enabled not in ENABLED:
            raise Refused(f"BootSourceOverrideEnabled {wanted.enabled!r} is not one of {', '.join(ENABLED)}")
        if wanted.target not in TARGETS:
            raise Refused(f"BootSourceOverrideTarget {wanted.target!r} is not one of {', '.join(TARGETS)}")
        if wanted.target == "UefiHttp" and self.settings.mode != "UEFI":
            raise Refused("BootSourceOverrideTarget UefiHttp needs BootSourceOverrideMode UEFI")
        if wanted.enabled == "Once" and self.faults.strike("boot_dropped"):
            return
        if wanted.enabled == "Disabled" or wanted.target == "None":
            wanted = Override()
        self.settings.override = wanted
        self._save()

    def set_mode(self, mode: str) -> None:
        """Legacy or UEFI, from the next time that the BMC starts the server; raises Refused."""
        if mode not in MODES:
            raise Refused(f"BootSourceOverrideMode {mode!r} is not one of {', '.join(MODES)}")
        if mode != "UEFI" and self.settings.secure_boot:
            raise Refused("BootSourceOverrideMode Legacy: Secure Boot is on, and needs UEFI")
        self.settings.mode = mode
        self._save()

    def set_secure_boot(self, enabled: bool) -> None:
        """On or off, from the next time that the BMC starts the server; raises Refused."""
        if enabled and self.settings.mode != "UEFI":
            raise Refused("SecureBootEnable needs BootSourceOverrideMode UEFI")
        self.settings.secure_boot = enabled
        self._save()

    def set_told(self, **changes: Any) -> None:
        """Set what the BMC reports of the server, by the fields of `Told`; raises Refused."""
        self.settings.told = self.settings.told.changed(**changes)
        self._save()

    def set_bios(self, attributes: dict[str, str]) -> None:
        """Settings of the firmware, from the next time that the BMC starts the server; raises Refused."""
        for name in attributes:
            if name not in BIOS:
                raise Refused(f"there is no BIOS attribute {name!r}, only {', '.join(BIOS)}")
        self.settings.bios_next |= attributes
        self._save()

    def change(self, what: Literal["create", "delete"], volume: Volume) -> Job | None:
        """Create or delete a volume; see `Work`."""
        job = self.settings.work.change(what, volume)
        self._save()
        return job

    def update(self, component: str, version: str, problem: str) -> Job:
        """Install new firmware; see `Work`."""
        job = self.settings.work.update(component, version, problem)
        self._save()
        return job

    def lapse(self) -> bool:
        """Ends updates of the BMC that have taken long enough; whether there were any."""
        over = self.settings.work.lapse()
        if over:
            self._save()
        return over

    def set_kind(self, *, raid_on_reset: bool, dell: bool) -> None:
        """Whether volumes change when the server restarts, else at once; and whether the BMC is an iDRAC."""
        self.settings.work.on_reset, self.settings.dell = raid_on_reset, dell
        self._save()

    def set_medium(self, image: str) -> None:
        """Put an image into the virtual drive, or take it out (empty)."""
        self.settings.medium = image
        self._save()

    def order(self, _machine_id: str) -> tuple[BootDevice, ...]:
        """The boot order for the current reset. It uses up a one-time override.

        A virtual drive with CoreOS's live ISO boots that. Any other medium boots the network: iPXE is on it.
        """
        settings = self.settings
        override, order = settings.override, _DISK
        medium = settings.medium if override.virtual or not settings.dell else ""
        if override.enabled != "Disabled" and override.target == "Cd" and _is_live_iso(medium):
            order = ("cd", "disk")
        elif override.enabled != "Disabled" and (override.target != "Cd" or medium):
            order = _DISK if override.target == "Hdd" else _NETWORK
        if override.enabled == "Once":
            if self.faults.strike("boot_not_honoured"):
                order = _DISK
            settings.override = Override()
        settings.reset_at = time.time()
        settings.boots = [*settings.boots[-9:], order[0]]
        self._save()
        _log.info("%s resets: %s", self.identity.name, ", ".join(order))
        return order

    def progress(self, power: Power) -> str:
        """BootProgress.LastState, as far as a BMC sees it from outside."""
        if power == "off":
            return "None"
        tested = time.time() > self.settings.reset_at + _SELF_TEST_SECONDS
        return "OSBootStarted" if tested else "PrimaryProcessorInitializationStarted"

    async def close(self) -> None:
        """Stop background tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _boot(self) -> None:
        settings = self.settings
        settings.powered, settings.secure_boot_now = True, settings.secure_boot
        settings.bios, settings.bios_next = settings.bios | settings.bios_next, {}
        blank = settings.work.at_start()
        self._save()
        if blank:
            await self._backend.blank(self._spec.id, blank)
        override = settings.override
        spec = replace(
            self._spec,
            firmware="uefi" if settings.mode == "UEFI" else "bios",
            secure_boot=settings.secure_boot,
            medium=settings.medium,
            disks=settings.work.disks(self._spec.disks),
        )
        if override.target == "UefiHttp" and override.uri:
            spec = replace(spec, boot_url=override.uri)
        order: BootOrder = self.order
        await self._backend.power_on(spec, order)

    async def _cut(self) -> None:
        self.settings.powered = False
        self._save()
        await self._backend.power_off(self._spec.id)

    async def _mains_back(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.lost_power = False
        if self.settings.powered:
            await self._boot()

    def _spawn(self, work: Any) -> None:
        async def logged() -> None:
            try:
                await work
            except BackendError:
                _log.exception("%s", self.identity.name)

        task = asyncio.create_task(logged())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _save(self) -> None:
        write_private(self._path, json.dumps(asdict(self.settings)))


def _is_live_iso(medium: str) -> bool:
    """Whether it is a disc like CoreOS's."""
    try:
        return bool(medium) and bool(Reader(Path(medium)).efi_boot())
    except (DiscError, OSError):
        return False


def _load(path: Path) -> Settings:
    try:
        return TypeAdapter(Settings).validate_json(path.read_bytes())
    except FileNotFoundError:
        return Settings()
