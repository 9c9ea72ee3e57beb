"""A server's own boot disc, made from CoreOS's live ISO: for BMCs with virtual media, and for Secure Boot.

Boot loader, kernel and initramfs stay as CoreOS's builders signed them: UEFI firmware starts shim, which Microsoft
signed; shim starts GRUB; GRUB starts the kernel, which the distribution signed. We add no program. A server's own data
is written where CoreOS reserves room for it: kernel arguments into the boot loader's configuration, and files into a
separate initramfs. `coreos-installer iso kargs modify` and `iso ignition embed` write to the same places.

    iso9660     finds a file on a disc
    minimal     the same disc without the root file system, 100 MB instead of 1.2 GB
    initrd      an initramfs with a few files
    embed       the changes for one server
    base        CoreOS's ISO: fetched once, checked, and stored without its root file system
    place       the disc on the artifact host

The root file system is then fetched over the network, as after a boot by iPXE: the initramfs knows its hash. A disc
with the root file system would be read through the BMC as long as the live system runs.

Sources: coreos/coreos-installer 0.24.0, src/live/embed.rs, src/live/mod.rs, src/miniso.rs, src/io/initrd.rs;
coreos/coreos-assembler, src/cmd-buildextend-live (before it moved to osbuild), which makes the disc's boot loader.
"""

from __future__ import annotations

from metal_ipi.provider.errors import ProviderError

PLAIN_ARGUMENT = r"[A-Za-z0-9_./:=,+@%~-]+"
"""Kernel arguments that GRUB and ISOLINUX pass on unchanged."""


class LiveIsoError(ProviderError):
    """A disc cannot be made: the ISO is not CoreOS's, or the server's data does not fit."""


__all__ = ["PLAIN_ARGUMENT", "LiveIsoError"]
