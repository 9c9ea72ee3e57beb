"""GRUB for the disk image: the boot loader of BIOS firmware, and the configuration of both, with CoreOS's markers.

What coreos-installer edits is where it expects it (its src/install.rs): `ignition.platform.id=metal` in the options of
the entry in loader/entries, the console settings between markers in grub2/grub.cfg, defaults in coreos/platforms.json.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

from lab.gpt import SECTOR
from lab.node_image.packages import Tools
from lab.node_image.tree import Tree

_COMMON = ("boot", "configfile", "echo", "ext2", "normal", "part_gpt", "reboot", "serial", "sleep", "terminal", "test")
_PLATFORM = "i386-pc"
_MODULES = ("biosdisk", *_COMMON)
"""In the loader itself. It loads `linux16` from the boot partition."""
_PREFIX = "(,gpt3)/grub2"
"""Where its files are: on the disk that it was loaded from, whatever other disks there are."""

_CONSOLE = ("serial --speed=115200", "terminal_input serial console", "terminal_output serial console")
_PLATFORM_DEFAULTS = {
    "metal": {"grub_commands": list(_CONSOLE), "kernel_arguments": ["console=tty0", "console=ttyS0,115200n8"]},
    "packet": {
        "grub_commands": ["serial --unit=1 --speed=115200", "terminal_input serial", "terminal_output serial"],
        "kernel_arguments": ["console=ttyS1,115200n8"],
    },
}

_CONFIGURATION = f"""\
# The lab's CoreOS stand-in. As on CoreOS, the file ignition.firstboot on this file system says that Ignition has to
# run, and may set ignition_network_kcmdline.

# CONSOLE-SETTINGS-START
{chr(10).join(_CONSOLE)}
# CONSOLE-SETTINGS-END

if [ -f /ignition.firstboot ]; then
    set ignition_network_kcmdline=''
    source /ignition.firstboot
    set ignition_firstboot="ignition.firstboot $ignition_network_kcmdline"
fi

# Debian's GRUB has no blscfg. A boot loader entry happens to be a script: its keys are defined as functions here.
# Commands come before functions: the signed GRUB has `linux` and `initrd`, which find no file as long as there is no
# root. (Loading them twice makes it crash.)
function title {{ set entry_title="$*"; }}
function version {{ set entry_version="$*"; }}
function options {{ set entry_options="$*"; }}
function linux {{ set entry_linux="$*"; }}
function initrd {{ set entry_initrd="$*"; }}
set boot=$root
set root=nowhere
source ($boot)/loader/entries/ostree-1-lab-coreos.conf
set root=$boot
if [ $grub_platform = pc ]; then
    # `linux` would move the 54 MB that the kernel asks for, byte by byte: two seconds on an emulated processor.
    insmod linux16
    linux16 KERNEL $entry_options
    initrd16 ARCHIVES
else
    insmod linux
    linux KERNEL $entry_options
    initrd ARCHIVES
fi
boot
"""


def boot_partition(debian: Path, release: str, files: dict[str, bytes]) -> Tree:
    """What is on the boot partition: `files` are the kernel (`vmlinuz`) and the archives that it unpacks, in order."""
    tree = Tree()
    directory = f"ostree/lab-coreos-{release}"
    for name, data in files.items():
        tree.file(f"{directory}/{name}", data)
    kernel, *archives = (f"/{directory}/{name}" for name in files)
    arguments = " ".join(_PLATFORM_DEFAULTS["metal"]["kernel_arguments"])
    tree.file(
        "loader/entries/ostree-1-lab-coreos.conf",
        (
            f"title Lab CoreOS {release}\nversion 1\n"
            f"options $ignition_firstboot root=PARTLABEL=root ignition.platform.id=metal {arguments}\n"
            f"linux {kernel}\ninitrd {' '.join(archives)}\n"
        ).encode(),
    )
    tree.file("ignition.firstboot", b"")
    tree.file("coreos/platforms.json", json.dumps(_PLATFORM_DEFAULTS, indent=2).encode() + b"\n")
    configuration = _CONFIGURATION.replace("KERNEL", kernel).replace("ARCHIVES", " ".join(archives))
    tree.file("grub2/grub.cfg", configuration.encode())
    source = debian / "usr/lib/grub" / _PLATFORM
    for module in _closure(source, "linux16"):
        tree.file(f"grub2/{_PLATFORM}/{module}.mod", (source / f"{module}.mod").read_bytes())
    return tree


def loader(tools: Tools, work: Path) -> bytes:
    """GRUB's core image for BIOS firmware."""
    image = work / f"{_PLATFORM}.img"
    tools.run(
        *("usr/bin/grub-mkimage", "-O", _PLATFORM, "-d", tools.directory / "usr/lib/grub" / _PLATFORM, "-p", _PREFIX),
        *("-o", image, *_MODULES),
    )
    return image.read_bytes()


def bios_sector(debian: Path, core_at: int) -> bytes:
    """The code of the master boot record, which loads the core image's first sector from byte `core_at` of the disk."""
    code = bytearray((debian / "usr/lib/grub/i386-pc/boot.img").read_bytes()[:440])
    struct.pack_into("<Q", code, 0x5C, core_at // SECTOR)
    # What grub-bios-setup does for hard disks: never mind that the drive's number looks like a floppy's.
    code[0x66:0x68] = b"\x90\x90"
    return bytes(code)


def at(core: bytes, core_at: int) -> bytes:
    """The core image, told that its second sector follows its first one at byte `core_at` of the disk."""
    patched = bytearray(core)
    struct.pack_into("<Q", patched, SECTOR - 12, core_at // SECTOR + 1)
    return bytes(patched)


def _closure(source: Path, module: str) -> list[str]:
    lines = (line.partition(":") for line in (source / "moddep.lst").read_text().splitlines())
    needs = {name: rest.split() for name, _, rest in lines}
    found: list[str] = []
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in found:
            found.append(name)
            todo += needs.get(name, [])
    return sorted(found)
