"""The archive that brings a live system its Ignition config, and NetworkManager profiles if it has its own networks.

It is unpacked after the initramfs, into the same tree. Format and path are those of `coreos-installer pxe ignition
wrap`: a newc archive with the file /config.ign (src/live/embed.rs, src/io/initrd.rs). coreos-ignition-setup-user.sh in
the live initramfs (fedora-coreos-config, 35coreos-ignition) passes that file to Ignition. `ignition.config.url` on the
kernel command line would override it (Ignition, fetchProviderConfig), so the two are never used together.

iPXE cannot verify what it fetches by http, so the archive contains no secret: it contains the URL and the hash of the
live system's config.
"""

from __future__ import annotations

from collections.abc import Mapping

from metal_ipi.provider.types import IGNITION_FILE, initramfs_archive

NAME = "config"
"""The archive's name on iPXE's command line, and in `initrd=`."""


def archive(config: str, files: Mapping[str, str] | None = None) -> str:
    """A newc archive (cpio(5)) with the Ignition config at the path where CoreOS's live initramfs looks for it.

    The archive is not compressed and is valid UTF-8 (with NUL characters), so it is uploaded like any other text file.

    Args:
        files: further files, text by path without a leading slash.
    """
    texts = {IGNITION_FILE: config, **(files or {})}
    return initramfs_archive({path: text.encode() for path, text in texts.items()}).decode()
