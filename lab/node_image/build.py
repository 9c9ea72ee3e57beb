"""Building the node image once, into the cache of the user."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lab.layout import cache_dir
from lab.node_image import afterburn, contents, initramfs, packages, rootfs
from lab.node_image.image import NodeImage

_SOURCES = Path(__file__).parent
_KEPT = 3
"""Images that stay in the cache; older ones are removed when a new one is built."""


def ensure(openshift: Path | None = None) -> NodeImage:
    """The node image, built first if nothing in the cache was made of the same inputs; raises ImageError.

    `openshift` is the static binary for /usr/local/bin/lab-openshift, by default the lab's own, which is built with Go.
    """
    if openshift is None:
        from lab.openshift.build import ensure as ensure_openshift

        openshift = ensure_openshift()
    built = afterburn.ensure()
    key = _key(openshift, built)
    cache = cache_dir() / "node-image"
    cache.mkdir(parents=True, exist_ok=True)
    directory = cache / key
    with _lock(cache / "lock"):
        if not (directory / "image.json").exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix="build-") as work:
                _build(Path(work), key, openshift, built).rename(directory)
            _forget_old(cache)
    return NodeImage.load(directory)


def _build(work: Path, key: str, openshift: Path, built: afterburn.Afterburn | None) -> Path:
    debian, result = work / "debian", work / "image"
    result.mkdir()
    packages.unpack(packages.fetch(contents.PACKAGES, work / "packages"), debian)
    release = _release(key)
    root = rootfs.build(
        debian,
        release,
        openshift=openshift,
        afterburn=built.binary if built else None,
        units=built.units if built else (),
    ).tar()
    (kernel,) = (debian / "boot").glob("vmlinuz-*")
    contained = {
        "kernel": kernel.read_bytes(),
        "initramfs": initramfs.build(debian, release, hashlib.sha512(root).hexdigest()).cpio(),
        "rootfs": root,
    }
    for name, data in contained.items():
        (result / name).write_bytes(data)
    NodeImage(
        directory=result,
        release=release,
        afterburn=built is not None,
        kernel_sha256=hashlib.sha256(contained["kernel"]).hexdigest(),
        initramfs_sha256=hashlib.sha256(contained["initramfs"]).hexdigest(),
        rootfs_sha256=hashlib.sha256(root).hexdigest(),
    ).save()
    return result


def _key(openshift: Path, built: afterburn.Afterburn | None) -> str:
    """A hash of what the image is made of: our own sources, the host's release, and the binaries built elsewhere."""
    total = hashlib.sha256(Path("/etc/os-release").read_bytes())
    sources = sorted(path for path in _SOURCES.rglob("*") if path.is_file() and path.suffix != ".pyc")
    for path in (*sources, openshift, *((built.binary, *built.units) if built else ())):
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def _release(key: str) -> str:
    """A release in the form of RHCOS (9.6.20251023-0) that differs whenever the inputs differ."""
    return f"12.0.{int(key, 16) % 10**8:08}-0"


def _forget_old(cache: Path) -> None:
    images = sorted(cache.glob("*/image.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for image in images[_KEPT:]:
        shutil.rmtree(image.parent)


@contextmanager
def _lock(path: Path) -> Generator[None, None, None]:
    """One build at a time: a second caller waits and then finds the first one's result."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
