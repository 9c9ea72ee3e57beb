"""Building the node image once, into the cache of the user."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from binaries.cache import cache_directory
from lab import gpt
from lab.node_image import contents, crates, disk, efi, initramfs, packages, rootfs
from lab.node_image.image import NodeImage

_SOURCES = Path(__file__).parent
_KEPT = 3
"""Images that stay in the cache; older ones are removed when a new one is built."""


@dataclass(frozen=True)
class Programs:
    """What is in the image and is not Debian's."""

    openshift: Path
    """The static binary that becomes /usr/local/bin/lab-openshift."""
    afterburn: crates.Built | None
    installer: crates.Built | None
    """coreos-installer."""


def ensure(openshift: Path | None = None) -> NodeImage:
    """The node image, built first if nothing in the cache was made of the same inputs; raises ImageError.

    `openshift` is the static binary for /usr/local/bin/lab-openshift, by default the lab's own, which is built with Go.
    """
    if openshift is None:
        from lab.openshift.build import ensure as ensure_openshift

        openshift = ensure_openshift()
    programs = Programs(openshift, crates.AFTERBURN.ensure(), crates.INSTALLER.ensure())
    key = _key(programs)
    cache = cache_directory() / "node-image"
    cache.mkdir(parents=True, exist_ok=True)
    directory = cache / key
    # A second caller waits here, and then finds the first one's result.
    with FileLock(cache / "lock", fallback_to_soft=False):
        if not (directory / "image.json").exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix="build-") as work:
                _build(Path(work), key, programs).rename(directory)
            _forget_old(cache)
    return NodeImage.load(directory)


def _build(work: Path, key: str, programs: Programs) -> Path:
    debian, result = work / "debian", work / "image"
    result.mkdir()
    isolinux = (package for package, _ in contents.ISOLINUX)
    needed = (*contents.PACKAGES, *contents.TOOLS, *contents.SIGNED, *isolinux)
    packages.unpack(packages.fetch(needed, work / "packages"), debian)
    release = _release(key)
    tree = rootfs.build(
        debian,
        release,
        openshift=programs.openshift,
        afterburn=programs.afterburn,
        installer=programs.installer,
    )
    root = tree.tar()
    (kernel_path,) = (debian / "boot").glob("vmlinuz-*")
    kernel = kernel_path.read_bytes()
    early = initramfs.build(debian, release, hashlib.sha512(root).hexdigest()).cpio()
    contained = {"kernel": kernel, "initramfs": early, "rootfs": root}
    contained |= disk.build(packages.Tools(debian), work / "disk", release, kernel=kernel, initramfs=early, root=tree)
    contained[efi.EFI_BOOT] = efi.disc_image(packages.Tools(debian), work)
    contained |= {Path(path).name: (debian / path).read_bytes() for _, path in contents.ISOLINUX}
    for name, data in contained.items():
        (result / name).write_bytes(data)
    NodeImage(
        directory=result,
        release=release,
        afterburn=programs.afterburn is not None,
        installer=programs.installer is not None,
    ).save()
    return result


def _key(programs: Programs) -> str:
    """A hash of what the image is made of: our own sources, the host's release, and the binaries built elsewhere."""
    total = hashlib.sha256(Path("/etc/os-release").read_bytes())
    sources = sorted(path for path in _SOURCES.rglob("*") if path.is_file() and path.suffix != ".pyc")
    crates_built = [built for built in (programs.afterburn, programs.installer) if built]
    binaries = (path for built in crates_built for path in (built.binary, *built.units))
    for path in (*sources, Path(gpt.__file__), programs.openshift, *binaries):
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def _release(key: str) -> str:
    """A release in the form of RHCOS (9.6.20251023-0) that differs whenever the inputs differ."""
    return f"12.0.{int(key, 16) % 10**8:08}-0"


def _forget_old(cache: Path) -> None:
    images = sorted(cache.glob("*/image.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for image in images[_KEPT:]:
        shutil.rmtree(image.parent)
