"""A server's disc, which boots the same as its iPXE script: with the same kernel arguments, and the same additional
initramfs.

Kernel and initramfs in the script belong to the disc's release, so the disc has them already. An additional initramfs
in the script (`initrd` with another file) is ours and small: its files are written into the disc's initramfs.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from metal_ipi.provider import boot_tree
from metal_ipi.provider.artifact_stores import open_store, persistently
from metal_ipi.provider.bmc_settings import LiveIso
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.live_iso import LiveIsoError, base, embed, initrd, place
from metal_ipi.provider.live_iso.iso9660 import Disc
from metal_ipi.provider.per_loop import PerLoop
from metal_ipi.provider.status import Say

_INITRD = "initrd="
_AT_ONCE = 2
"""A disc has 100 MB, so only so many are made and uploaded at once."""
_limit = PerLoop(lambda: asyncio.Semaphore(_AT_ONCE))


@dataclass(frozen=True, kw_only=True)
class Script:
    """What an iPXE script boots."""

    arguments: tuple[str, ...]
    """Kernel arguments, without `initrd=`."""
    initramfs: tuple[str, ...]
    """URLs of additional ones, after the release's own."""


def read(text: str) -> Script:
    """Parse one of our boot scripts. Raises LiveIsoError for other iPXE commands."""
    arguments: tuple[str, ...] | None = None
    images: list[str] = []
    for line in text.splitlines():
        command, _, rest = line.partition(" ")
        if command == "kernel":
            arguments = tuple(word for word in rest.split()[1:] if not word.startswith(_INITRD))
        elif command == "initrd":
            images.append(rest.split()[-1])
        elif line and line != "boot" and not line.startswith("#"):
            raise LiveIsoError(f"a live ISO has no place for `{command}` of a boot script")
    if arguments is None or not images:
        raise LiveIsoError("the boot script names no kernel, or no initramfs")
    return Script(arguments=arguments, initramfs=tuple(images[1:]))


async def publish(settings: Settings, iso: LiveIso, mac: str, script: str, tell: Say) -> None:
    """Make the disc for a script and upload it, unless it is there already. Raises ProviderError."""
    digest = boot_tree.digest(script)
    if await place.digest_of(settings, mac) == digest:
        return
    wanted = read(script)
    files: dict[str, bytes] = {}
    for url in wanted.initramfs:
        files |= initrd.unpack(await _ours(settings, url))
    minimal = await base.minimal_iso(settings, iso, tell)
    async with _limit.get():
        await tell("making its boot disc")
        with tempfile.TemporaryDirectory(prefix="metal-ipi-") as folder:
            made = Path(folder) / "boot.iso"
            await asyncio.to_thread(_write, minimal, made, wanted.arguments, files)
            await tell("uploading its boot disc")
            await place.put(settings, mac, digest, made, tell)


async def withdraw(settings: Settings, mac: str) -> None:
    """Delete the disc and the script of a server. Both, because the settings tell only how it boots now, and a script
    that is left would boot its old installer. Missing ones are no error."""
    await boot_tree.withdraw(settings, mac)
    await place.remove(settings, mac)


async def is_published(settings: Settings, mac: str, digest: str) -> bool:
    """Whether the script with this `boot_tree.digest` is published, or a disc made from it."""
    return await boot_tree.is_published(settings, mac, digest) or await place.digest_of(settings, mac) == digest


def _write(minimal: Path, made: Path, arguments: tuple[str, ...], files: dict[str, bytes]) -> None:
    shutil.copyfile(minimal, made)
    with made.open("r+b") as file:
        for patch in embed.patches(Disc(file), arguments, files):
            file.seek(patch.offset)
            file.write(patch.data)


async def _ours(settings: Settings, url: str) -> bytes:
    """A file on the artifact host."""
    artifacts = settings.need_artifacts()
    # The longer URL first: one may be below the other.
    for start in sorted({artifacts.base_url, artifacts.boot_base_url}, key=len, reverse=True):
        directory, _, name = url.removeprefix(f"{start}/").rpartition("/")
        if url.startswith(f"{start}/") and directory:
            return await persistently(lambda where=directory, what=name: open_store(artifacts).read(where, what))
    raise LiveIsoError(f"the boot script has a further initramfs that is not on the artifact host: {url}")
