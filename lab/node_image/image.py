"""The built node image, and how a lab serves it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.live_iso.coreos import BIOS_BOOT, Parts, live_iso
from lab.node_image import disk
from lab.node_image.efi import EFI_BOOT
from lab.node_image.initramfs import with_authority

_LIVE = ("kernel", "initramfs", "rootfs")


@dataclass(frozen=True, kw_only=True)
class NodeImage:
    """A node image in the cache: what live PXE boots, the halves of the disk image, and what is in them."""

    directory: Path
    """Its files are named after `_LIVE`, EFI_BOOT, BIOS_BOOT, and the disk's halves."""
    release: str
    """What the stream calls it, and OSTREE_VERSION on the nodes."""
    afterburn: bool
    """Whether Afterburn is in it."""
    installer: bool
    """Whether coreos-installer is in it."""

    @classmethod
    def load(cls, directory: Path) -> NodeImage:
        """The image that `save` described in `directory`."""
        return cls(directory=directory, **json.loads((directory / "image.json").read_text()))

    def save(self) -> None:
        """Describe the image beside its files."""
        fields = {name: value for name, value in asdict(self).items() if name != "directory"}
        (self.directory / "image.json").write_text(json.dumps(fields, indent=2) + "\n")

    def publish(self, boot_root: Path, ca_pem: bytes, base_url: str, base_config: str) -> dict[str, Any]:
        """Put the image under `boot_root`/images/<release>/, trusting `ca_pem`; the stream document that describes it.

        `base_url` is where `boot_root` is served, `base_config` what the image adds to machines' Ignition configs. The
        files are copies: a rehearsed fault may damage them, the cache must not notice.
        """
        names = (*_LIVE, disk.HEAD, disk.TAIL, EFI_BOOT)
        kernel, plain, rootfs, head, tail, efi_boot = ((self.directory / name).read_bytes() for name in names)
        contents = {
            "kernel": kernel,
            "initramfs": with_authority(plain, ca_pem, base_config),
            "rootfs": rootfs,
            "disk": disk.publish(head, tail, ca_pem, base_config),
        }
        bios_boot = {path: (self.directory / Path(path).name).read_bytes() for path in BIOS_BOOT}
        return publish(boot_root, base_url, self.release, contents, efi_boot, bios_boot=bios_boot)


def publish(
    boot_root: Path,
    base_url: str,
    release: str,
    contents: Mapping[str, bytes],
    efi_boot: bytes,
    *,
    bios_boot: Mapping[str, bytes],
    architecture: str = "x86_64",
    disk_format: str = disk.FORMAT,
) -> dict[str, Any]:
    """Write the artifacts of a release and its live ISO; the CoreOS stream metadata document of bare metal.

    `contents` are kernel, initramfs, rootfs and disk. coreos/stream-metadata-go has the document's form.
    """
    live = {name: contents[name] for name in _LIVE}
    served = {f"live-{name}.{architecture}{'' if name == 'kernel' else '.img'}": data for name, data in live.items()}
    served[f"metal.{architecture}.{disk_format}"] = contents["disk"]
    parts = Parts(release=release, efi_boot=efi_boot, bios_boot=bios_boot, **live)
    served[f"live-iso.{architecture}.iso"] = live_iso(parts)
    directory = boot_root / "images" / release
    directory.mkdir(parents=True, exist_ok=True)
    artifacts: list[dict[str, str]] = []
    for suffix, data in served.items():
        name = f"lab-coreos-{release}-{suffix}"
        (directory / name).write_bytes(data)
        location = f"{base_url.rstrip('/')}/images/{release}/{name}"
        artifacts.append({"location": location, "sha256": hashlib.sha256(data).hexdigest()})
    *pxe, disk_image, iso = artifacts
    formats = {
        "pxe": dict(zip(_LIVE, pxe, strict=True)),
        disk.FORMAT: {"disk": disk_image},
        "iso": {"disk": iso},
    }
    metal = {"release": release, "formats": formats}
    return {
        "stream": "lab",
        "metadata": {"last-modified": "2026-01-01T00:00:00Z", "generator": "metal-ipi lab"},
        "architectures": {architecture: {"artifacts": {"metal": metal}, "images": {}}},
    }
