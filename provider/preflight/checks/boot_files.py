"""Preflight check: are kernel, initramfs and rootfs at the URLs that the stream names, with the hashes that it names?

The check downloads small files and computes their hashes. A rootfs is about one gigabyte, and downloading it would take
longer than all other checks: for files larger than `preflight.hashedMib` the check only asks for the size. The machines
verify the hash of the rootfs in any case.

A file that is to be kept on the artifact host must be there already, under the name that contains its hash; otherwise
it must be available at the stream's URL, from where it is copied.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.preflight import http
from metal_ipi.provider.preflight.findings import Finding, error, ok
from metal_ipi.provider.preflight.plan import LIVE_ISO, BootFile
from metal_ipi.provider.preflight.subject import Subject

if TYPE_CHECKING:
    import httpx

NAME = "boot-files"
_MIB = 1024 * 1024


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per file."""
    return list(await asyncio.gather(*(_file(subject, file) for file in subject.plan.boot)))


async def _file(subject: Subject, file: BootFile) -> Finding:
    async with http.opened(subject) as client:
        if file.mirrored is not None and await _is_mirrored(client, file.mirrored, subject):
            return ok(f"{file.name} is on the artifact host, under its hash")
        try:
            size = await http.size_of(client, file.url, subject)
            is_small = size is not None and size <= subject.plan.hashed_mib * _MIB
            hashed = await http.sha256_of(client, file.url) if is_small else None
        except RemoteError as failure:
            return error(
                f"{file.name}: {failure}",
                "correct boot.streamUrl (boot.streamFile), or make that server answer; " + _who(file),
            )
    if hashed not in (None, file.sha256):
        return error(
            f"{file.name}: {file.url} has the hash {hashed}, but the stream metadata say {file.sha256}",
            "upload the file of that release again, or correct the stream",
        )
    size_text = "of unknown size" if size is None else f"{size / _MIB:.0f} MiB"
    return ok(f"{file.name} is there, {size_text}, {'with the right hash' if hashed else 'not hashed'}")


async def _is_mirrored(client: httpx.AsyncClient, url: str, subject: Subject) -> bool:
    try:
        await http.size_of(client, url, subject)
    except RemoteError:
        return False
    return True


def _who(file: BootFile) -> str:
    if file.mirrored is not None:
        return "it must be reached from here (artifacts.mirror): it is copied to the artifact host"
    if file.name == LIVE_ISO:
        return "it must be reached from here: servers' boot discs are made from it (bootMethod live-iso)"
    return f"if only the machines reach it, override {NAME} in preflight.overrides, and give that reason"
