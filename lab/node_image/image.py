"""The built node image, and how a lab serves it."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.live_iso.coreos import Parts, live_iso
from lab.node_image import disk
from lab.node_image.efi import EFI_BOOT
from lab.node_image.initramfs import with_authority

_LIVE = ("kernel", "initramfs", "rootfs")
_SUFFIX = {
    "kernel": "live-kernel.x86_64",
    "initramfs": "live-initramfs.x86_64.img",
    "rootfs": "live-rootfs.x86_64.img",
    "disk": f"metal.x86_64.{disk.FORMAT}",
    "iso": "live-iso.x86_64.iso",
}


@dataclass(frozen=True, kw_only=True)
class NodeImage:
    """A node image in the cache: three files, as live PXE boots them, the disk image, and what is in them."""

    directory: Path
    release: str
    """What the stream calls it, and OSTREE_VERSION on the nodes."""
    afterburn: bool
    """Whether Afterburn is in it."""
    installer: bool
    """Whether coreos-installer is in it."""
    kernel_sha256: str
    initramfs_sha256: str
    """Of the cached file, which no machine boots: `publish` adds a lab's CA to it."""
    rootfs_sha256: str

    @property
    def programs(self) -> dict[str, bool]:
        """Programs that are in it only where they could be built, and whether they are."""
        return {"Afterburn": self.afterburn, "coreos-installer": self.installer}

    @property
    def kernel(self) -> Path:
        """The kernel (bzImage)."""
        return self.directory / "kernel"

    @property
    def initramfs(self) -> Path:
        """The initramfs without a CA."""
        return self.directory / "initramfs"

    @property
    def rootfs(self) -> Path:
        """The root file system (tar)."""
        return self.directory / "rootfs"

    @classmethod
    def load(cls, directory: Path) -> NodeImage:
        """The image that `save` described in `directory`."""
        return cls(directory=directory, **json.loads((directory / "image.json").read_text()))

    def save(self) -> None:
        """Describe the image beside its files."""
        fields = {name: value for name, value in asdict(self).items() if name != "directory"}
        (self.directory / "image.json").write_text(json.dumps(fields, indent=2) + "\n")

    def publish(self, boot_root: Path, ca_pem: bytes, base_url: str, base_config: str) -> dict[str, object]:
        """Put the image under `boot_root`/images/<release>/, trusting `ca_pem`; the stream document that describes it.

        `base_url` is where `boot_root` is served, `base_config` what the image adds to machines' Ignition configs. The
        files are copies: a rehearsed fault may damage them, the cache must not notice.
        """
        directory = boot_root / "images" / self.release
        directory.mkdir(parents=True, exist_ok=True)
        served = {name: directory / f"lab-coreos-{self.release}-{_SUFFIX[name]}" for name in _SUFFIX}
        shutil.copyfile(self.kernel, served["kernel"])
        shutil.copyfile(self.rootfs, served["rootfs"])
        initramfs = with_authority(self.initramfs.read_bytes(), ca_pem, base_config)
        served["initramfs"].write_bytes(initramfs)
        head, tail = ((self.directory / name).read_bytes() for name in (disk.HEAD, disk.TAIL))
        installable = disk.publish(head, tail, ca_pem, base_config)
        served["disk"].write_bytes(installable)
        disc = live_iso(
            Parts(
                release=self.release,
                kernel=self.kernel.read_bytes(),
                initramfs=initramfs,
                rootfs=self.rootfs.read_bytes(),
                efi_boot=(self.directory / EFI_BOOT).read_bytes(),
            )
        )
        served["iso"].write_bytes(disc)
        sums = {
            "iso": hashlib.sha256(disc).hexdigest(),
            "kernel": self.kernel_sha256,
            "initramfs": hashlib.sha256(initramfs).hexdigest(),
            "rootfs": self.rootfs_sha256,
            "disk": hashlib.sha256(installable).hexdigest(),
        }
        return stream(self.release, f"{base_url.rstrip('/')}/images/{self.release}", served, sums)


def stream(release: str, url: str, files: dict[str, Path], sums: dict[str, str]) -> dict[str, object]:
    """A CoreOS stream metadata document of bare metal's artifacts: PXE, and `disk` and `iso` where they are files.

    coreos/stream-metadata-go has the document's form.
    """
    artifacts = {name: {"location": f"{url}/{path.name}", "sha256": sums[name]} for name, path in files.items()}
    formats = {"pxe": {name: artifacts[name] for name in _LIVE}}
    if "disk" in artifacts:
        formats[disk.FORMAT] = {"disk": artifacts["disk"]}
    if "iso" in artifacts:
        formats["iso"] = {"disk": artifacts["iso"]}
    metal = {"release": release, "formats": formats}
    return {
        "stream": "lab",
        "metadata": {"last-modified": "2026-01-01T00:00:00Z", "generator": "metal-ipi lab"},
        "architectures": {"x86_64": {"artifacts": {"metal": metal}, "images": {}}},
    }
