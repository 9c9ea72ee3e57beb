"""Writes ISO 9660 discs: short names, no extensions, and what BIOS and UEFI firmware boot (El Torito).

Sources: ECMA-119; Phoenix and IBM, "El Torito" bootable CD-ROM format specification, 1.0; UEFI specification, 13.3.2.1;
for the table in ISOLINUX, mkisofs(8), "EL TORITO BOOT INFORMATION TABLE".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

SECTOR = 2048
_SYSTEM_AREA = 16
_PRIMARY, _BOOT, _TERMINATOR = 1, 0, 255
_X86, _EFI = 0, 0xEF
"""El Torito's platform ids of BIOS and UEFI."""
_BOOTABLE, _LAST_SECTION = 0x88, 0x91
_LOADED = 4
"""Blocks of 512 bytes that a BIOS loads; ISOLINUX reads the rest of itself."""
_TABLE, _AFTER_TABLE = 8, 64
"""Where ISOLINUX has the table of where it is, and where what the table's checksum is of begins."""
_DIRECTORY = 2
_DATE = bytes((126, 1, 1, 0, 0, 0, 0))
"""1 January 2026: the same files make the same disc."""
_LONG_DATE = b"2026010100000000\0"


class DiscError(ValueError):
    """A file that is not possible on a disc."""


@dataclass(kw_only=True)
class _Folder:
    name: str
    path: str = ""
    """What stands before the names of its files."""
    parent: _Folder | None = None
    """None for the root, which is its own."""
    folders: dict[str, _Folder] = field(default_factory=dict[str, "_Folder"])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    sector: int = 0
    number: int = 0
    """Its number in the path table."""


@dataclass(frozen=True, kw_only=True)
class Disc:
    """A disc, and where its files are."""

    data: bytes
    sectors: Mapping[str, int]
    """The first sector of each file, by path."""


def short(path: str) -> str:
    """A path as it stands on the disc: capitals, endings of three characters."""
    *folders, name = path.upper().split("/")
    stem, dot, end = name.partition(".")
    if len(stem) > 8 or any(len(folder) > 8 for folder in folders):
        raise DiscError(f"{path}: names on a disc have 8 characters, and 3 after a dot")
    return "/".join((*folders, f"{stem}{dot}{end[:3]}"))


def disc(files: Mapping[str, bytes], *, label: str, efi: str | None = None, bios: str | None = None) -> Disc:
    """A disc with files, by path; `efi` is the one that UEFI firmware is to boot: a FAT image. `bios` is ISOLINUX."""
    root = _Folder(name="\0")
    for path, content in files.items():
        *folders, name = short(path).split("/")
        here = root
        for folder in folders:
            inner = _Folder(name=folder, path=f"{here.path}{folder}/", parent=here)
            here = here.folders.setdefault(folder, inner)
        here.files[name] = content
    tree = _numbered(root)
    # descriptors, boot catalogue, two path tables, directories, files
    boots = bool(efi or bios)
    sector = _SYSTEM_AREA + (3 if boots else 2)
    catalogue, sector = (sector, sector + 1) if boots else (0, sector)
    table = _path_table(tree, little=True)
    little, big, sector = sector, sector + _sectors(len(table)), sector + 2 * _sectors(len(table))
    for folder in tree:
        folder.sector, sector = sector, sector + _sectors(_size(folder))
    places: dict[str, int] = {}
    for path, content in files.items():
        places[path], sector = sector, sector + _sectors(len(content))
    if bios:
        files = {**files, bios: _told_where_it_is(files[bios], places[bios])}
    by_name = {short(path): place for path, place in places.items()}
    parts = [
        bytes(_SYSTEM_AREA * SECTOR),
        _primary(root, label, sectors=sector, table=len(table), tables=(little, big)),
    ]
    if boots:
        parts.append(_boot_record(catalogue))
    parts.append(_sector(bytes((_TERMINATOR,)) + b"CD001\1"))
    if boots:
        entries = [(_X86, _LOADED, places[bios])] if bios else []
        # The image, of as many blocks as fit in the field; firmware reads on by itself.
        entries += [(_EFI, min((len(files[efi]) + 511) // 512, 0xFFFF), places[efi])] if efi else []
        parts.append(_sector(_catalogue(entries)))
    parts += [_padded(_path_table(tree, little=True)), _padded(_path_table(tree, little=False))]
    parts += [_padded(_directory(folder, by_name)) for folder in tree]
    parts += [_padded(content) for content in files.values()]
    return Disc(data=b"".join(parts), sectors=places)


def _numbered(root: _Folder) -> list[_Folder]:
    """All folders, in the order of the path table: level by level."""
    tree, level = [root], [root]
    while level:
        level = [folder.folders[name] for folder in level for name in sorted(folder.folders)]
        tree += level
    for number, folder in enumerate(tree, start=1):
        folder.number = number
    return tree


def _path_table(tree: list[_Folder], *, little: bool) -> bytes:
    order = "<" if little else ">"
    table = b""
    for folder in tree:
        name, parent = folder.name.encode(), folder.parent or folder
        table += struct.pack(f"{order}BBIH", len(name), 0, folder.sector, parent.number) + name
        table += b"\0" * (len(name) % 2)
    return table


def _directory(folder: _Folder, places: Mapping[str, int]) -> bytes:
    parent = folder.parent or folder
    records = [
        _record("\0", folder.sector, _size(folder), _DIRECTORY),
        _record("\1", parent.sector, _size(parent), _DIRECTORY),
    ]
    entries: dict[str, bytes] = {
        name: _record(name, child.sector, _size(child), _DIRECTORY) for name, child in folder.folders.items()
    }
    for name, content in folder.files.items():
        entries[name] = _record(f"{name};1", places[f"{folder.path}{name}"], len(content), 0)
    return _within_sectors([*records, *(entries[name] for name in sorted(entries))])


def _size(folder: _Folder) -> int:
    """The size of its records, in whole sectors; it does not depend on their position."""
    records = [_record("\0", 0, 0, 0), _record("\1", 0, 0, 0)]
    records += [_record(name, 0, 0, 0) for name in folder.folders]
    records += [_record(f"{name};1", 0, 0, 0) for name in folder.files]
    return _sectors(len(_within_sectors(records))) * SECTOR


def _within_sectors(records: list[bytes]) -> bytes:
    """Records one after the other; none of them crosses a sector."""
    data = b""
    for record in records:
        if len(data) % SECTOR + len(record) > SECTOR:
            data = _padded(data)
        data += record
    return data


def _record(name: str, sector: int, size: int, flags: int) -> bytes:
    encoded = name.encode()
    length = 33 + len(encoded) + (len(encoded) + 1) % 2
    head = struct.pack("<BB", length, 0) + _both_endian(sector) + _both_endian(size) + _DATE
    head += struct.pack("<BBB", flags, 0, 0) + _both16(1) + bytes((len(encoded),)) + encoded
    return head.ljust(length, b"\0")


def _primary(root: _Folder, label: str, *, sectors: int, table: int, tables: tuple[int, int]) -> bytes:
    little, big = tables
    data = bytes((_PRIMARY,)) + b"CD001\1\0" + b" " * 32 + label.encode().ljust(32) + bytes(8) + _both_endian(sectors)
    data += bytes(32) + _both16(1) * 2 + _both16(SECTOR) + _both_endian(table)
    data += struct.pack("<II", little, 0) + struct.pack(">II", big, 0)
    data += _record("\0", root.sector, _size(root), _DIRECTORY)
    data += b" " * 128 * 4 + b" " * 37 * 3 + _LONG_DATE * 2 + b"0" * 16 + b"\0" + b"0" * 16 + b"\0" + b"\1\0"
    return _sector(data)


def _boot_record(catalogue: int) -> bytes:
    name = b"EL TORITO SPECIFICATION".ljust(64, b"\0")
    return _sector(bytes((_BOOT,)) + b"CD001\1" + name + struct.pack("<I", catalogue))


def _catalogue(entries: list[tuple[int, int, int]]) -> bytes:
    """One entry, and a section with another: for which platform, how many 512-byte blocks, from which sector."""
    (platform, blocks, sector), *others = entries
    check = struct.pack("<BBH24sHBB", 1, platform, 0, b"", 0, 0x55, 0xAA)
    total = sum(struct.unpack("<16H", check)) & 0xFFFF
    data = struct.pack("<BBH24sHBB", 1, platform, 0, b"", (0x10000 - total) & 0xFFFF, 0x55, 0xAA)
    data += _bootable(blocks, sector)
    for platform, blocks, sector in others:
        data += struct.pack("<BBH28s", _LAST_SECTION, platform, 1, b"") + _bootable(blocks, sector)
    return data


def _bootable(blocks: int, sector: int) -> bytes:
    return struct.pack("<BBHBBHI", _BOOTABLE, 0, 0, 0, 0, blocks, sector).ljust(32, b"\0")


def _told_where_it_is(isolinux: bytes, sector: int) -> bytes:
    """ISOLINUX with its boot information table."""
    rest = isolinux[_AFTER_TABLE:].ljust(-(-len(isolinux[_AFTER_TABLE:]) // 4) * 4, b"\0")
    checksum = sum(struct.unpack(f"<{len(rest) // 4}I", rest)) & 0xFFFFFFFF
    table = struct.pack("<IIII40s", _SYSTEM_AREA, sector, len(isolinux), checksum, b"")
    return isolinux[:_TABLE] + table + isolinux[_AFTER_TABLE:]


def _both_endian(number: int) -> bytes:
    return struct.pack("<I", number) + struct.pack(">I", number)


def _both16(number: int) -> bytes:
    return struct.pack("<H", number) + struct.pack(">H", number)


def _sectors(size: int) -> int:
    return max(1, -(-size // SECTOR))


def _padded(data: bytes) -> bytes:
    return data.ljust(_sectors(len(data)) * SECTOR, b"\0")


def _sector(data: bytes) -> bytes:
    if len(data) > SECTOR:
        raise DiscError(f"a descriptor has {len(data)} bytes")
    return data.ljust(SECTOR, b"\0")
