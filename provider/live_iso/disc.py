"""A server's disc, made of what its iPXE script would boot: the same kernel arguments, the same further initramfs.

Kernel and initramfs of the script are those of the disc's release; the disc has its own. A further initramfs of the
script (`initrd` of another file) is ours, and small: its files go into the disc's.
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
"""A disc has 100 MB: so many are made and uploaded at a time."""
_limit = PerLoop(lambda: asyncio.Semaphore(_AT_ONCE))


@dataclass(frozen=True, kw_only=True)
class Script:
    """What an iPXE script boots."""

    arguments: tuple[str, ...]
    """Kernel arguments, without those that name an initramfs."""
    initramfs: tuple[str, ...]
    """URLs of further ones, after the release's own."""


def read(text: str) -> Script:
    """Reads a boot script of ours. Raises LiveIsoError for one that does more than boot."""
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
    """Makes the disc of a script, and uploads it, unless it is there. Raises ProviderError."""
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
    """Takes away what a server boots, disc and script: the settings tell how it boots now, not how it did, and a script
    that stays has it boot its old installer. Finding nothing is fine."""
    await boot_tree.withdraw(settings, mac)
    await place.remove(settings, mac)


async def is_published(settings: Settings, mac: str, digest: str) -> bool:
    """Whether the script of this `boot_tree.digest` is there, or a disc that is made of it; see `withdraw`."""
    return await boot_tree.is_published(settings, mac, digest) or await place.digest_of(settings, mac) == digest


def _write(minimal: Path, made: Path, arguments: tuple[str, ...], files: dict[str, bytes]) -> None:
    shutil.copyfile(minimal, made)
    with made.open("r+b") as file:
        for patch in embed.patches(Disc(file), arguments, files):
            file.seek(patch.offset)
            file.write(patch.data)


async def _ours(settings: Settings, url: str) -> bytes:
    """A file of the artifact host's."""
    artifacts = settings.need_artifacts()
    # The longer one first: one may lie below the other.
    for start in sorted({artifacts.base_url, artifacts.boot_base_url}, key=len, reverse=True):
        directory, _, name = url.removeprefix(f"{start}/").rpartition("/")
        if url.startswith(f"{start}/") and directory:
            return await persistently(lambda where=directory, what=name: open_store(artifacts).read(where, what))
    raise LiveIsoError(f"the boot script has a further initramfs that is not on the artifact host: {url}")
