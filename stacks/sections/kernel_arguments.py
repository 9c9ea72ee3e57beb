"""Kernel arguments that a stack may not set, because a setting or this program sets them.

Other programs read them: Ignition (`ignition.*`), coreos-installer's own service (`coreos.inst.*`), the live initramfs
(`coreos.live.*`), the boot loader (`initrd`), ostree and dracut (`root`, `ostree`), systemd (`systemd.unit` and the
words with the same effect: systemd(1), kernel-command-line(7)). If an argument is given twice, the last or the first
value wins, so a second one would silently override ours.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from metal_ipi.components.boot.installer import takes_console
from metal_ipi.stacks.sections.base import wrong

_STREAM = "remove it: boot.streamUrl (boot.streamFile) says what is booted"
_ROOT = "remove it: boot.install.device says which disk is installed to, and that system knows its own root"
_TARGET = "remove it: with another target a machine never joins its cluster"
_FAMILIES = {
    "ignition.": ("this program sets where Ignition finds its config", "remove it; use a MachineConfig to configure "
    "nodes further"),
    "coreos.inst.": ("it starts coreos-installer beside the one that boot.install describes",
                     "remove it, and set boot.install.device, boot.install.image or boot.consoles"),
    "coreos.live.": ("this program says where the live system has its root file system from", _STREAM),
    "metal-ipi.": ("this program passes such arguments to its own installer", "remove it"),
}  # fmt: skip
_NAMES = {
    "initrd": ("this program says which archives are loaded", _STREAM),
    "root": ("the image says what the root file system is", _ROOT),
    "ostree": ("the boot loader's entry says which deployment is started", _ROOT),
    "init": ("the system's own init reads everything else", _TARGET),
    "rdinit": ("the initramfs's own init reads everything else", _TARGET),
    "rd.break": ("it stops the boot in the initramfs", _TARGET),
    "systemd.unit": ("it starts another target than the system's own", _TARGET),
    "rd.systemd.unit": ("it starts another target than the initramfs's own", _TARGET),
    "systemd.hostname": ("a machine's name is made of clusterName and its role", "remove it"),
    **dict.fromkeys(
        ("single", "s", "S", "1", "2", "3", "4", "5", "emergency", "rescue", "-b", "rd.emergency"),
        ("systemd would start another target than the system's own", _TARGET),
    ),
}
NETWORK = ("ip", "nameserver", "rd.neednet", "rd.route", "bond", "bridge", "ifname", "team", "vlan")
"""Arguments that dracut and NetworkManager read as the network's configuration (dracut.cmdline(7))."""


def name(argument: str) -> str:
    """The name of an argument with or without a value."""
    return argument.strip('"').partition("=")[0]


def _allowed(value: tuple[str, ...]) -> tuple[str, ...]:
    for argument in value:
        if not argument or any(character.isspace() for character in argument):
            raise wrong(f"'{argument}' is not one argument", "write one argument per list item, without spaces")
        called = name(argument)
        found = _NAMES.get(called) or next(
            (text for family, text in _FAMILIES.items() if called.startswith(family)), None
        )
        if called == "console" and takes_console(argument.strip('"').partition("=")[2]):
            found = ("consoles have a setting of their own, which configures the boot loader, too",
                     f"set boot.consoles to [{argument.partition('=')[2]}]; this installs machines anew that are "
                     "installed to disk already")  # fmt: skip
        if found is not None:
            why, remedy = found
            raise wrong(f"'{argument}' contradicts this program: {why}", remedy)
    return value


KernelArguments = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_allowed)]
"""Further kernel arguments, besides those that this program sets: one argument per item."""
