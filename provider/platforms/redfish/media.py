"""Virtual media: an image that the BMC presents to its server as a disc."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.platforms.redfish import quirks
from metal_ipi.provider.platforms.redfish.connection import Connection


async def insert(connection: Connection, image: str) -> None:
    """Insert an image, by its URL, into the first drive that accepts it. Raises RemoteError."""
    await connection.call("to insert the boot image", lambda system: _insert(connection, system, image))


async def eject(connection: Connection, ours: Callable[[str], bool]) -> None:
    """Eject our images from every drive; others stay. `ours` decides by the image's URL."""

    def take_out(system: Any) -> None:
        for drive in _drives(system):
            if drive.inserted and ours(str(drive.image or "")):
                drive.eject_media()

    await connection.call("to eject the boot image", take_out)


def _insert(connection: Connection, system: Any, image: str) -> None:
    from sushy import exceptions

    refusals: list[str] = []
    for drive in _drives(system):
        try:
            # Eject also if it seems to have this image already: iDRAC still lists an image for a while after it was
            # ejected (Ironic, boot.py, _insert_vmedia_in_resource).
            if drive.inserted:
                drive.eject_media()
            drive.insert_media(image)
        except exceptions.SushyError as error:
            if not quirks.next_slot(error):
                raise
            refusals.append(f"{drive.identity}: {connection.quote(error)}")
        else:
            return
    raise RemoteError(
        f"{connection.where} has no virtual drive that accepts {image} ({'; '.join(refusals) or 'there is none'}): "
        "check "
        "that URL and the BMC's licence, or set another `bootMethod` in `bmcs`"
    )


def _drives(system: Any) -> Iterator[Any]:
    """Virtual drives for discs: those of the System, or, on older BMCs, of its managers."""
    from sushy import exceptions

    try:
        found = list(system.virtual_media.get_members())
    except (exceptions.MissingAttributeError, exceptions.ResourceNotFoundError):
        found = [drive for manager in system.managers for drive in manager.virtual_media.get_members()]
    return (drive for drive in found if quirks.takes_discs(drive.media_types))
