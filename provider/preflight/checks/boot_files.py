"""Are kernel, initramfs and rootfs where the stream says, and what it says?

Of small files the hash is computed, so they are fetched once; a rootfs has a gigabyte, and fetching it would take
longer than all else: of larger files (preflight.hashedMib) only the size is asked for. The machines check the rootfs's
hash in any case.
"""

from __future__ import annotations

import asyncio

from provider.errors import RemoteError
from provider.preflight import http
from provider.preflight.findings import Finding
from provider.preflight.plan import BootFile
from provider.preflight.subject import Subject

NAME = "boot-files"
_MIB = 1024 * 1024


async def check(subject: Subject) -> list[Finding]:
    """A finding per file."""
    return list(await asyncio.gather(*(_file(subject, file) for file in subject.plan.boot)))


async def _file(subject: Subject, file: BootFile) -> Finding:
    async with http.opened(subject) as client:
        try:
            size = await http.size_of(client, file.url, subject)
            is_small = size is not None and size <= subject.plan.hashed_mib * _MIB
            hashed = await http.sha256_of(client, file.url) if is_small else None
        except RemoteError as error:
            return Finding(
                check=NAME,
                level="error",
                what=f"{file.name}: {error}",
                remedy="correct boot.streamUrl (boot.streamFile), or have that server answer; where only the machines"
                f" reach it, add {NAME} to preflight.excused",
            )
    if hashed not in (None, file.sha256):
        return Finding(
            check=NAME,
            level="error",
            what=f"{file.name}: {file.url} has the hash {hashed}, and the stream says {file.sha256}",
            remedy="upload the file of that release again, or correct the stream",
        )
    told = "of unknown size" if size is None else f"{size / _MIB:.0f} MiB"
    return Finding(
        check=NAME,
        level="ok",
        what=f"{file.name} is there, {told}, {'with the right hash' if hashed else 'not hashed'}",
    )
