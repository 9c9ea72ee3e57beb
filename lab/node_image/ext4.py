"""A file tree as an ext4 file system in a file: made by mke2fs, filled by debugfs.

No mount and no root, and the same tree gives the same bytes: `mke2fs -d` would copy times, owners and the order of
directories from the host.
"""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath

from lab.errors import ImageError
from lab.node_image.packages import Tools
from lab.node_image.tree import Entry, Tree

_BLOCK = 4096
_JOURNAL_MIB = 4
_FEATURES = (
    *("has_journal", "ext_attr", "resize_inode", "dir_index", "filetype", "extent", "flex_bg", "sparse_super"),
    *("large_file", "huge_file", "extra_isize", "metadata_csum"),
)
"""What kernels have known for long, and GRUB, which reads one of these file systems, too."""
_CLOCK = {"E2FSPROGS_FAKE_TIME": "1", "MKE2FS_CONFIG": "/dev/null"}
"""0 would mean the host's clock; what the host has configured does not matter."""


def build(tools: Tools, tree: Tree, work: Path, label: str, uuid: str, *, free_mib: int) -> bytes:
    """A file system of that label with `tree` in it, and `free_mib` of space beside. `work` is for its files."""
    work.mkdir()
    image = work / "image"
    blocks = sum(-(-len(entry.data) // _BLOCK) + 1 for _, entry in tree.entries())
    size = (blocks * _BLOCK >> 20) + _JOURNAL_MIB + free_mib + 1
    tools.run(
        *("usr/sbin/mke2fs", "-q", "-F", "-O", ",".join(("none", *_FEATURES)), "-b", str(_BLOCK), "-I", "256"),
        # Few inodes per group: their tables are written when the file system grows.
        *("-i", "32768", "-m", "0", "-J", f"size={_JOURNAL_MIB}", "-L", label, "-U", uuid),
        *("-E", f"hash_seed={uuid},root_owner=0:0,lazy_itable_init=0,nodiscard", image, f"{size}M"),
        **_CLOCK,
    )
    script = work / "script"
    script.write_text("".join(f"{line}\n" for line in _commands(tree, work)))
    # debugfs ends with 0 whatever became of its commands.
    said = tools.run("usr/sbin/debugfs", "-w", "-f", script, image, **_CLOCK)
    wrong = [line for line in said.splitlines() if not line.startswith(("debugfs", "Allocated inode: "))]
    if wrong:
        raise ImageError(f"file system {label}: debugfs says {'; '.join(wrong[:5])}")
    tools.run("usr/sbin/e2fsck", "-f", "-n", image, **_CLOCK)
    return image.read_bytes()


def _commands(tree: Tree, work: Path) -> list[str]:
    lines: list[str] = []
    for number, (path, entry) in enumerate(tree.entries()):
        name = PurePosixPath(path).name
        if any(character.isspace() or character in "\"'" for character in path + _target(entry)):
            raise ImageError(f"{path}: debugfs does not take names with blanks or quotes")
        lines.append(f"cd /{PurePosixPath(path).parent}")
        if stat.S_ISDIR(entry.mode):
            lines.append(f"mkdir {name}")
        elif stat.S_ISLNK(entry.mode):
            lines.append(f"symlink {name} {_target(entry)}")
        elif stat.S_ISREG(entry.mode):
            source = work / str(number)
            source.write_bytes(entry.data)
            lines.append(f"write {source} {name}")
        else:
            raise ImageError(f"{path}: only files, directories and links can be put onto a disk")
        lines += [f"set_inode_field {name} mode 0{entry.mode:o}"]
        lines += [
            f"set_inode_field {name} {field} {owner}" for field, owner in (("uid", entry.uid), ("gid", entry.gid))
        ]
    return lines


def _target(entry: Entry) -> str:
    return entry.data.decode() if stat.S_ISLNK(entry.mode) else ""
