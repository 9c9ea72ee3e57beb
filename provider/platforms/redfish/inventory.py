"""What a BMC reports about its server. A missing value is left out, never guessed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from metal_ipi.provider.bmc_settings import BmcSettings
from metal_ipi.provider.errors import InvalidInputs, RemoteError
from metal_ipi.provider.inventory.facts import Disk
from metal_ipi.provider.platforms.redfish import capacity, secure_boot, storage
from metal_ipi.provider.platforms.redfish.cards import cards
from metal_ipi.provider.platforms.redfish.connection import Connection, identities, word
from metal_ipi.provider.platforms.redfish.documents import Document, Documents, member, or_none
from metal_ipi.provider.platforms.redfish.survey import BOOT_MODE, MODES


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """A server."""

    where: str
    """The server's name in messages."""
    identity: str
    """Its UUID, or its serial number if the BMC has no UUID."""
    power: str
    """`On`, `Off`, `PoweringOn`, `PoweringOff` or `Unknown`."""
    manufacturer: str | None
    model: str | None
    serial: str | None
    bios_version: str | None
    memory_mib: int | None
    boot_mode: str | None
    """`uefi` or `bios`."""
    secure_boot: bool | None
    """Whether its firmware starts only signed programs."""
    nics: Sequence[str]
    """MAC addresses, in lower case."""
    disks: Sequence[Disk]
    console: str
    """The place of its console, for people."""

    def check_mac(self, mac: str, settings: BmcSettings) -> None:
        """Raise InvalidInputs for a server without that interface, unless the settings say to ignore it. If no
        interfaces are reported, that is unknown, and accepted."""
        if settings.cards == "check" and self.nics and mac.lower() not in self.nics:
            raise InvalidInputs(
                f"{self.where} has no network interface with the MAC address {mac}, but "
                f"{', '.join(self.nics)}: correct its `mac`, or its `address` in `bmcs`"
            )

    def check_free(self, *, accept: str, ours: bool = False) -> None:
        """Raise InvalidInputs for a server that may be in use by others: one that is on."""
        if self.power != "Off" and not ours and accept != "wipe":
            raise InvalidInputs(
                f"{self.where} is {self.power}, and it may run something that is not of this cluster: switch it off, "
                "or, if all its disks may be wiped, set `consent: wipe` for this server"
            )


async def take(connection: Connection, macs: Collection[str] = ()) -> Inventory:
    """Read the inventory; `macs` are the cards that are looked for."""
    documents = Documents()
    return await connection.call("for its inventory", lambda system: _take(connection, documents, system, macs))


async def secure_boot_of(connection: Connection) -> bool | None:
    """Whether its firmware starts only signed programs; None if the BMC does not report it."""
    return await connection.call("whether Secure Boot is on", secure_boot.is_on)


def power(system: Any) -> str:
    """The power state."""
    return word(system.power_state) or "Unknown"


def _take(connection: Connection, documents: Documents, system: Any, macs: Collection[str]) -> Inventory:
    document = documents.of(system)
    known = identities(system)
    if not known:
        raise RemoteError(
            f"{connection.where} reports neither its UUID nor its serial number: update the BMC's firmware"
        )
    return Inventory(
        where=connection.where,
        identity=known[0],
        power=power(system),
        manufacturer=system.manufacturer,
        model=system.model,
        serial=system.serial_number,
        bios_version=system.bios_version,
        memory_mib=capacity.memory_mib(documents, document),
        boot_mode=connection.settings.boot_mode or MODES.get(str(member(document, "Boot").get(BOOT_MODE))),
        secure_boot=secure_boot.is_on(system),
        nics=[card.mac for card in or_none(lambda: cards(documents, document, macs)) or ()],
        disks=or_none(lambda: storage.disks(documents, document)) or (),
        console=_console(connection, documents, document),
    )


def _console(connection: Connection, documents: Documents, system: Document) -> str:
    host = urlsplit(connection.settings.address).hostname or ""
    managers = or_none(lambda: documents.related(system, "ManagedBy")) or ()
    kinds = {
        str(kind) for each in managers for kind in member(each, "SerialConsole").get("ConnectTypesSupported") or ()
    }
    return f"{host} ({', '.join(sorted(kinds))})" if kinds else host
