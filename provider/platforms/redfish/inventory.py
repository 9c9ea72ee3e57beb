"""What a BMC tells of its server. A part it does not have is left out, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from metal_ipi.provider.errors import InvalidInputs, RemoteError
from metal_ipi.provider.platforms.redfish import capacity, secure_boot
from metal_ipi.provider.platforms.redfish.connection import Connection, identities, word

T = TypeVar("T")
_MODES = {"UEFI": "uefi", "Legacy": "bios"}


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A disk as the BMC tells of it."""

    name: str
    size_bytes: int | None
    model: str | None
    serial: str | None
    media_type: str | None
    """`SSD`, `HDD`, …"""

    def to_wire(self) -> dict[str, Any]:
        """Without what is not known."""
        values = {"name": self.name, "sizeBytes": self.size_bytes, "model": self.model, "serial": self.serial,
                  "mediaType": self.media_type}  # fmt: skip
        return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """A server."""

    where: str
    """How messages call it."""
    identity: str
    """Its UUID, or the serial number where the BMC has none."""
    power: str
    """`On`, `Off`, `PoweringOn`, `PoweringOff` or `Unknown`."""
    manufacturer: str | None
    model: str | None
    serial: str | None
    bios_version: str | None
    memory_mib: int | None
    cpus: int | None
    """Threads, or cores where only those are told."""
    boot_mode: str | None
    """`uefi` or `bios`."""
    secure_boot: bool | None
    """Whether its firmware starts only what is signed."""
    nics: Sequence[str]
    """MAC addresses, in lower case."""
    disks: Sequence[Disk]
    console: str
    """Where to find its console, for people."""

    def check_mac(self, mac: str) -> None:
        """Refuses a server without that interface. Of one that tells of none it is not known."""
        if self.nics and mac.lower() not in self.nics:
            raise InvalidInputs(
                f"{self.where} has no network interface with the MAC address {mac}, but "
                f"{', '.join(self.nics)}: correct its `mac`, or its `address` in `bmcs`"
            )

    def check_free(self, *, accept: str, ours: bool = False) -> None:
        """Refuses a server that may be somebody's: one that is switched on."""
        if self.power != "Off" and not ours and accept != "wipe":
            raise InvalidInputs(
                f"{self.where} is {self.power}, and nothing shows that what runs on it is ours: switch it off, or, "
                "if it and all its disks may be wiped, set `consent: wipe` of this server"
            )


async def take(connection: Connection) -> Inventory:
    """Asks for all of it."""
    return await connection.call("for its inventory", lambda system: _take(connection, system))


async def secure_boot_of(connection: Connection) -> bool | None:
    """Whether its firmware starts only what is signed; None where the BMC does not tell."""
    return await connection.call("whether Secure Boot is on", lambda system: _told(lambda: secure_boot.state(system)))


def power(system: Any) -> str:
    """The power state."""
    return word(system.power_state) or "Unknown"


def _take(connection: Connection, system: Any) -> Inventory:
    boot = system.boot or {}
    mode = boot.get("mode")
    known = identities(system)
    if not known:
        raise RemoteError(f"{connection.where} tells neither its UUID nor its serial number: update the BMC's firmware")
    return Inventory(
        where=connection.where,
        identity=known[0],
        power=power(system),
        manufacturer=system.manufacturer,
        model=system.model,
        serial=system.serial_number,
        bios_version=system.bios_version,
        memory_mib=_told(lambda: capacity.memory_mib(system)),
        cpus=capacity.cpus(system),
        boot_mode=connection.settings.boot_mode or (None if mode is None else _MODES[mode.value]),
        secure_boot=_told(lambda: secure_boot.state(system)),
        nics=_part(lambda: _nics(system)),
        disks=_part(lambda: _drives(system)) or _part(lambda: _simple(system)),
        console=_console(connection, system),
    )


def _part(read: Callable[[], Sequence[T]]) -> Sequence[T]:
    """Nothing where the BMC has no such part."""
    return _told(read) or ()


def _told(read: Callable[[], T]) -> T | None:
    """None where the BMC has no such part: it is not linked, or what is linked cannot be had."""
    from sushy import exceptions

    try:
        return read()
    except exceptions.MissingAttributeError:
        return None
    except exceptions.HTTPError as error:
        if error.status_code in (404, 405, 500, 501):
            return None
        raise


def _nics(system: Any) -> list[str]:
    found: dict[str, None] = {}
    for nic in system.ethernet_interfaces.get_members():
        for mac in (nic.permanent_mac_address, nic.mac_address):
            if mac:
                found[str(mac).lower().replace("-", ":")] = None
    return list(found)


def _drives(system: Any) -> list[Disk]:
    return [
        Disk(
            name=str(drive.name or drive.identity),
            size_bytes=drive.capacity_bytes,
            model=drive.model,
            serial=drive.serial_number,
            media_type=drive.media_type,
        )
        for storage in system.storage.get_members()
        if storage.drives_identities
        for drive in storage.drives
    ]


def _simple(system: Any) -> list[Disk]:
    return [
        Disk(name=str(device.name), size_bytes=device.capacity_bytes, model=device.model, serial=None, media_type=None)
        for storage in system.simple_storage.get_members()
        for device in storage.devices
        if device.capacity_bytes
    ]


def _console(connection: Connection, system: Any) -> str:
    host = urlsplit(connection.settings.address).hostname or ""
    kinds = _part(
        lambda: sorted(
            {
                str(kind)
                for manager in system.managers
                for kind in (manager.serial_console or {}).get("connect_types_supported") or ()
            }
        )
    )
    return f"{host} ({', '.join(kinds)})" if kinds else host
