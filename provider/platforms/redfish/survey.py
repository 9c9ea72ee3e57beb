"""Everything that a BMC reports about its server, for checks before anything is changed.

Schema: ComputerSystem (Boot, TrustedModules), Manager, VirtualMedia. BMCs differ: a trusted module that is not there is
listed with the state Absent (iLO), or not at all; if the field is missing, it is unknown whether there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from metal_ipi.provider.inventory.facts import Drive, Hardware, Tpm
from metal_ipi.provider.platforms.redfish import capacity, health, quirks, secure_boot, storage
from metal_ipi.provider.platforms.redfish.cards import cards
from metal_ipi.provider.platforms.redfish.connection import Connection
from metal_ipi.provider.platforms.redfish.documents import Document, Documents, Untold, member, or_none, text

BOOT_MODE = "BootSourceOverrideMode"
MODES = {"UEFI": "uefi", "Legacy": "bios"}


async def take(connection: Connection, macs: Collection[str] = ()) -> Hardware:
    """Read everything; `macs` are the cards that are looked for."""
    documents = Documents()
    return await connection.call("for its inventory", lambda system: read(connection.where, documents, system, macs))


def read(where: str, documents: Documents, system: Any, macs: Collection[str]) -> Hardware:
    """The same for a System of sushy; `where` is the server's name in messages."""
    document = documents.of(system)
    boot = member(document, "Boot")
    managers = or_none(lambda: documents.related(document, "ManagedBy")) or [{}]
    manager = managers[0]
    clock = _clock(manager)  # immediately, because our own clock goes on
    versions = {"BIOS": text(document.get("BiosVersion")), "BMC": text(manager.get("FirmwareVersion"))}
    hardware = Hardware(
        where=where,
        power=text(document.get("PowerState")) or "Unknown",
        manufacturer=text(document.get("Manufacturer")),
        model=text(document.get("Model")),
        serial=text(document.get("SerialNumber")),
        uuid=(text(document.get("UUID")) or "").lower() or None,
        memory_mib=capacity.memory_mib(documents, document),
        cpus=capacity.cpus(document),
        cards=or_none(lambda: cards(documents, document, macs)),
        architecture=or_none(lambda: capacity.architecture(documents, document)),
        boot_mode=MODES.get(str(boot.get(BOOT_MODE))),
        boot_modes=_modes(boot),
        boot_targets=_words(boot.get("BootSourceOverrideTarget@Redfish.AllowableValues")),
        override=_override(boot),
        secure_boot=secure_boot.is_on(system),
        tpm=_tpm(document),
        drives=or_none(lambda: _drives(documents, document, managers)),
        clock=clock,
        firmware={name: version for name, version in versions.items() if version is not None},
        parts=health.of_system(documents, document),
    )
    # Last: there may be many disks, and the number of requests to a BMC is limited.
    disks = or_none(lambda: storage.seen(documents, document)) or or_none(lambda: storage.disks(documents, document))
    of_disks = or_none(lambda: list(storage.parts(documents, document))) or ()
    return replace(hardware, disks=disks or None, parts=[*(hardware.parts or ()), *of_disks])


def _words(value: Any) -> list[str] | None:
    return [str(word) for word in value] if isinstance(value, list) and value else None


def _modes(boot: Document) -> list[str] | None:
    offered = _words(boot.get(f"{BOOT_MODE}@Redfish.AllowableValues"))
    return [MODES[word] for word in offered if word in MODES] if offered else None


def _override(boot: Document) -> str | None:
    """The permanent boot override; None for the disk, or for none."""
    target = text(boot.get("BootSourceOverrideTarget"))
    lasting = boot.get("BootSourceOverrideEnabled") == "Continuous"
    return target if lasting and target not in (None, "None", "Hdd") else None


def _tpm(system: Document) -> Tpm | None:
    modules: Any = system.get("TrustedModules")
    if not isinstance(modules, list):
        return None
    there = [each for each in modules if isinstance(each, dict) and _state(each) != "Absent"]
    on = [each for each in there if _state(each) in (None, "Enabled", "StandbyOffline")]
    kinds = {str(each.get("InterfaceType")) for each in on}
    if "TPM2_0" in kinds:
        return "2.0"
    if kinds & {"TPM1_2", "TCM1_0"}:
        return "1.2"
    if on:
        return None  # nothing reports the version
    return "off" if there else "none"


def _state(document: Document) -> Any:
    return member(document, "Status").get("State")


def _drives(documents: Documents, system: Document, managers: Sequence[Document]) -> list[Drive]:
    """Virtual drives for discs: those of the System, or, on older BMCs, of its managers."""
    try:
        found = documents.listed(system, "VirtualMedia")
    except Untold:
        lists = [or_none(lambda: documents.listed(manager, "VirtualMedia")) for manager in managers]  # noqa: B023
        if all(each is None for each in lists):
            raise
        found = [drive for each in lists for drive in each or ()]
    return [
        Drive(name=str(each.get("Id") or each.get("Name")), disc=_disc(each))
        for each in found
        if quirks.is_for_discs(each.get("MediaTypes"))
    ]


def _disc(drive: Document) -> str | None:
    """The host from which the disc in a drive comes. Not the whole URL: whoever reads one of our URLs can fetch
    secrets."""
    if not drive.get("Inserted"):
        return None
    return f"a disc of {urlsplit(str(drive.get('Image') or '')).hostname or 'unknown origin'}"


def _clock(manager: Document) -> tuple[datetime, datetime] | None:
    try:
        theirs = datetime.fromisoformat(str(manager.get("DateTime")))
    except ValueError:
        return None
    return (theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)), datetime.now(UTC)
