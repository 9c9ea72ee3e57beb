"""A file tree in memory, written as a cpio or tar archive.

The image is put together here and not in a directory, so that owners and modes are what they are meant to be without
root, without fakeroot, and the same tree always gives the same bytes.
"""

from __future__ import annotations

import io
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Entry:
    """One file, directory, link or device node."""

    mode: int
    """Type and permission bits as in stat(2)."""
    data: bytes = b""
    """Content of a file, target of a symbolic link."""
    uid: int = 0
    gid: int = 0
    device: tuple[int, int] = (0, 0)
    """Major and minor number of a device node."""


class Tree:
    """Paths (relative, no leading slash) and what is there. Parent directories appear by themselves."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def __getitem__(self, path: str) -> Entry:
        return self._entries[path]

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """All entries, parents before children."""
        yield from sorted(self._entries.items())

    def directory(self, path: str, permissions: int = 0o755, *, uid: int = 0, gid: int = 0) -> None:
        """Add a directory, or change the owner and mode of one that is there."""
        self._add(path, Entry(stat.S_IFDIR | permissions, uid=uid, gid=gid))

    def file(self, path: str, data: bytes, permissions: int = 0o644) -> None:
        """Add a file of root's."""
        self._add(path, Entry(stat.S_IFREG | permissions, data))

    def link(self, path: str, target: str) -> None:
        """Add a symbolic link."""
        self._add(path, Entry(stat.S_IFLNK | 0o777, target.encode()))

    def device(self, path: str, major: int, minor: int, permissions: int = 0o600) -> None:
        """Add a character device."""
        self._add(path, Entry(stat.S_IFCHR | permissions, device=(major, minor)))

    def overlay(self, source: Path) -> None:
        """Add everything under `source`; an executable file stays executable, other modes are the usual ones."""
        for path in sorted(source.rglob("*")):
            name = path.relative_to(source).as_posix()
            if path.is_symlink():
                self.link(name, str(path.readlink()))
            elif path.is_file():
                self.file(name, path.read_bytes(), 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)

    def cpio(self) -> bytes:
        """The tree as a newc archive, which is what the kernel unpacks as initramfs."""
        out = io.BytesIO()
        for number, (path, entry) in enumerate(self.entries(), start=1):
            _write_newc(out, number, path, entry)
        _write_newc(out, 0, "TRAILER!!!", Entry(0))
        out.write(b"\0" * (-out.tell() % 512))
        return out.getvalue()

    def tar(self) -> bytes:
        """The tree as an uncompressed tar archive."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path, entry in self.entries():
                info = tarfile.TarInfo(path)
                info.mode, info.uid, info.gid = stat.S_IMODE(entry.mode), entry.uid, entry.gid
                if stat.S_ISDIR(entry.mode):
                    info.type = tarfile.DIRTYPE
                elif stat.S_ISLNK(entry.mode):
                    info.type, info.linkname = tarfile.SYMTYPE, entry.data.decode()
                elif stat.S_ISCHR(entry.mode):
                    info.type, (info.devmajor, info.devminor) = tarfile.CHRTYPE, entry.device
                else:
                    info.size = len(entry.data)
                archive.addfile(info, io.BytesIO(entry.data) if info.isreg() else None)
        return out.getvalue()

    def _add(self, path: str, entry: Entry) -> None:
        for parent in PurePosixPath(path).parents[:-1]:
            self._entries.setdefault(str(parent), Entry(stat.S_IFDIR | 0o755))
        self._entries[path] = entry


def _write_newc(out: io.BytesIO, number: int, path: str, entry: Entry) -> None:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (number, entry.mode, entry.uid, entry.gid, links, 0, len(entry.data), 0, 0, *entry.device, len(name), 0)
    out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
    out.write(b"\0" * (-out.tell() % 4))
    out.write(entry.data)
    out.write(b"\0" * (-out.tell() % 4))
