"""A server's own boot disc, made of CoreOS's live ISO: for BMCs that attach it, and for firmware with Secure Boot.

Boot loader, kernel and initramfs stay as CoreOS's builders signed them: UEFI firmware starts shim, which Microsoft
signed, shim starts GRUB, and GRUB the kernel, which the distribution signed. Nothing of ours is started. What a server
is told stands where CoreOS reserves room for it: kernel arguments in the boot loader's configuration, and files in an
initramfs of their own; `coreos-installer iso kargs modify` and `iso ignition embed` write to the same places.

    iso9660     where a file of a disc begins
    minimal     the same disc without the root file system, 100 MB instead of 1.2 GB
    initrd      an initramfs of a few files
    embed       what is written where, for one server
    base        CoreOS's ISO, fetched once, checked, and kept without its root file system
    place       the disc on the artifact host

The root file system is fetched over the network then, as after a boot by iPXE: the initramfs knows its hash. A disc
with it would have to be read through the BMC, for as long as the live system runs.

Sources: coreos/coreos-installer 0.24.0, src/live/embed.rs, src/live/mod.rs, src/miniso.rs, src/io/initrd.rs;
coreos/coreos-assembler, src/cmd-buildextend-live (before it moved to osbuild), where the disc's boot loader comes from.
"""

from __future__ import annotations

from metal_ipi.provider.errors import ProviderError

PLAIN_ARGUMENT = r"[A-Za-z0-9_./:=,+@%~-]+"
"""Kernel arguments that GRUB and ISOLINUX hand on as they stand."""


class LiveIsoError(ProviderError):
    """A disc cannot be made: the ISO is none of CoreOS's, or what it is to hold does not fit."""


__all__ = ["PLAIN_ARGUMENT", "LiveIsoError"]
