"""The archive that gives a live system its Ignition, and profiles of NetworkManager where it has networks of its own:
unpacked after the initramfs, into the same tree.

Format and place are those of `coreos-installer pxe ignition wrap`: a newc archive with the file /config.ign (its
src/live/embed.rs, src/io/initrd.rs). coreos-ignition-setup-user.sh in the live initramfs (fedora-coreos-config,
35coreos-ignition) hands that file to Ignition. `ignition.config.url` on the kernel command line would win over it
(Ignition, fetchProviderConfig), so the two never stand together.

iPXE cannot verify what it fetches by http, so the archive holds no secret: it says where the live system's config is,
and pins it by hash.
"""

from __future__ import annotations

from collections.abc import Mapping

from metal_ipi.provider.types import IGNITION_FILE, initramfs_archive

NAME = "config"
"""What the archive is called on iPXE's command line, and in `initrd=`."""


def archive(config: str, files: Mapping[str, str] | None = None) -> str:
    """A newc archive (cpio(5)) with a config at the place where CoreOS's live initramfs looks for one.

    It is not compressed and all of it is UTF-8, so the archive is text, NUL characters included: it is uploaded like
    any other file.

    Args:
        files: more of them, by path without a leading slash.
    """
    texts = {IGNITION_FILE: config, **(files or {})}
    return initramfs_archive({path: text.encode() for path, text in texts.items()}).decode()
