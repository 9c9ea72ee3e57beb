"""What there is to boot: the stream metadata document and the files that it names, under the boot server's root."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.layout import Layout, write_private
from lab.live_iso.coreos import Parts, live_iso
from lab.network import plan

if TYPE_CHECKING:
    from lab.openshift.real.release import Release

BASE_URL = f"http://{plan.BOOT_NAME}"
CONTAINERS = "containers"
"""The directory that nodes pull container images from (lab/openshift/node/images.go)."""
SIMULATED_RELEASE = "12.0.0-0"
# A simulated machine takes its operating system's version from the root file system, as a real one does.
_SIMULATED_ROOTFS = (
    "NAME='Lab CoreOS (simulated)'\nID=rhcos-lab\n"
    f"VERSION='{SIMULATED_RELEASE}'\nVERSION_ID='12.0'\nOSTREE_VERSION='{SIMULATED_RELEASE}'\n"
)
ARCHITECTURES = ("x86_64", "aarch64")
"""Those that simulated machines can be of."""


def _simulated_files(architecture: str) -> dict[str, tuple[str, str]]:
    """By what stream documents call them: the ending of the file's name, and its content."""
    sha256 = hashlib.sha256(_SIMULATED_ROOTFS.encode()).hexdigest()
    return {
        # Firmware starts no kernel of another architecture: lab/machines/simulated/firmware.py.
        "kernel": (
            f"live-kernel.{architecture}",
            json.dumps({"kind": "simulated-kernel", "architecture": architecture}),
        ),
        # Like CoreOS's initramfs it knows the one root file system that it will boot.
        "initramfs": (
            f"live-initramfs.{architecture}.img",
            json.dumps({"kind": "simulated-initramfs", "rootfs_sha256": sha256}),
        ),
        "rootfs": (f"live-rootfs.{architecture}.img", _SIMULATED_ROOTFS),
        # What the simulated coreos-installer writes: lab/machines/simulated/programs/installer.py.
        "disk": (
            f"metal.{architecture}.raw",
            json.dumps({"kind": "simulated-disk-image", "os_release": _SIMULATED_ROOTFS}),
        ),
    }


def _simulated_iso(contents: Mapping[str, tuple[str, bytes]]) -> bytes:
    """CoreOS's disc of the same files. What a real one has from Microsoft, it says to have."""
    kernel, initramfs, rootfs = (contents[name][1] for name in ("kernel", "initramfs", "rootfs"))
    signed = json.dumps({"kind": "simulated-efi-boot", "signed": True}).encode()
    return live_iso(
        Parts(release=SIMULATED_RELEASE, kernel=kernel, initramfs=initramfs, rootfs=rootfs, efi_boot=signed)
    )


def publish(layout: Layout, machines: str, release: Release | None = None) -> None:
    """Put the images for this kind of machines and their stream document where the boot server finds them.

    Container images, too: those of a release, if there is one.
    """
    document = _publish_image(layout) if machines == "libvirt" else _publish_simulated(layout.boot)
    _publish_containers(layout.boot / CONTAINERS, release)
    write_private(layout.boot / "streams" / "lab.json", json.dumps(document, indent=2) + "\n")


def base_config(layout: Layout) -> str:
    """What the lab's operating system adds to machines' Ignition configs."""
    from lab.openshift import base_config

    return base_config.render(json.loads(layout.api_servers.read_text()) if layout.api_servers.exists() else None)


def _publish_image(layout: Layout) -> dict[str, object]:
    from lab.node_image.build import ensure

    return ensure().publish(layout.boot, layout.ca.read_bytes(), BASE_URL, base_config(layout))


def _publish_containers(directory: Path, release: Release | None) -> None:
    """Put the programs of container images where nodes pull them from; what was not built is not there.

    lab/openshift/real/release.py says what the tree looks like.
    """
    from lab import kube_vip

    program = kube_vip.KUBE_VIP.cached()
    if program is not None:
        target = directory / kube_vip.image()
        (target / "bin").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(program, target / "bin" / program.name)
        (target / "entrypoint").write_text(f"{program.name}\n")
    if release is not None:
        release.publish(directory)


def _publish_simulated(boot: Path) -> dict[str, object]:
    """Small files with real hashes: simulated machines fetch and verify them like any other."""
    from lab.node_image.image import stream

    directory = boot / "images" / SIMULATED_RELEASE
    directory.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {}
    for architecture in ARCHITECTURES:
        files: dict[str, Path] = {}
        contents = {name: (suffix, text.encode()) for name, (suffix, text) in _simulated_files(architecture).items()}
        contents["iso"] = (f"live-iso.{architecture}.iso", _simulated_iso(contents))
        for name, (suffix, content) in contents.items():
            files[name] = directory / f"lab-coreos-{SIMULATED_RELEASE}-{suffix}"
            files[name].write_bytes(content)
        sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
        one: dict[str, Any] = stream(SIMULATED_RELEASE, f"{BASE_URL}/images/{SIMULATED_RELEASE}", files, sums)
        (artifacts,) = one["architectures"].values()
        document = {**one, "architectures": {**document.get("architectures", {}), architecture: artifacts}}
    return document
