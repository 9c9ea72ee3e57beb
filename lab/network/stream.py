"""What there is to boot: the stream metadata document and the files that it names, under the boot server's root."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from lab.layout import Layout, write_private
from lab.network import plan

BASE_URL = f"http://{plan.BOOT_NAME}"
SIMULATED_RELEASE = "12.0.0-0"
# A simulated machine takes its operating system's version from the root file system, as a real one does.
_SIMULATED_ROOTFS = (
    "NAME='Lab CoreOS (simulated)'\nID=rhcos-lab\n"
    f"VERSION='{SIMULATED_RELEASE}'\nVERSION_ID='12.0'\nOSTREE_VERSION='{SIMULATED_RELEASE}'\n"
)
_SIMULATED_FILES = {
    "kernel": ("live-kernel.x86_64", "metal-ipi lab: the kernel of simulated machines, which run none\n"),
    # Like CoreOS's initramfs it knows the one root file system that it will boot.
    "initramfs": (
        "live-initramfs.x86_64.img",
        json.dumps(
            {
                "kind": "simulated-initramfs",
                "rootfs_sha256": hashlib.sha256(_SIMULATED_ROOTFS.encode()).hexdigest(),
            }
        ),
    ),
    "rootfs": ("live-rootfs.x86_64.img", _SIMULATED_ROOTFS),
    # What the simulated coreos-installer writes: lab/machines/simulated/programs/installer.py.
    "disk": ("metal.x86_64.raw", json.dumps({"kind": "simulated-disk-image", "os_release": _SIMULATED_ROOTFS})),
}


def publish(layout: Layout, machines: str) -> None:
    """Put the images for this kind of machines and their stream document where the boot server finds them."""
    document = _publish_image(layout) if machines == "libvirt" else _publish_simulated(layout.boot)
    write_private(layout.boot / "streams" / "lab.json", json.dumps(document, indent=2) + "\n")


def _publish_image(layout: Layout) -> dict[str, object]:
    from lab.node_image.build import ensure

    image = ensure()
    _publish_containers(layout.boot / "images" / image.release / "containers")
    return image.publish(layout.boot, layout.ca.read_bytes(), BASE_URL)


def _publish_containers(directory: Path) -> None:
    """Put the programs of container images where nodes pull them from; what was not built is not there."""
    from lab import kube_vip

    program = kube_vip.KUBE_VIP.cached()
    if program is not None:
        target = directory / kube_vip.image()
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(program, target)


def _publish_simulated(boot: Path) -> dict[str, object]:
    """Small files with real hashes: simulated machines fetch and verify them like any other."""
    from lab.node_image.image import stream

    directory = boot / "images" / SIMULATED_RELEASE
    directory.mkdir(parents=True, exist_ok=True)
    files: dict[str, Path] = {}
    for name, (suffix, content) in _SIMULATED_FILES.items():
        files[name] = directory / f"lab-coreos-{SIMULATED_RELEASE}-{suffix}"
        files[name].write_text(content)
    sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    return stream(SIMULATED_RELEASE, f"{BASE_URL}/images/{SIMULATED_RELEASE}", files, sums)
