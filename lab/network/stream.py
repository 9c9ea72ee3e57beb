"""Publishes what machines boot: the stream metadata and its files, in the boot server's root directory."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.layout import Layout, write_private
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


def _publish_image(layout: Layout) -> dict[str, Any]:
    from lab.node_image.build import ensure

    return ensure().publish(layout.boot, layout.ca.read_bytes(), BASE_URL, base_config(layout))


def _publish_containers(directory: Path, release: Release | None) -> None:
    """Put the programs of container images where nodes pull them from; what was not built is not there.

    lab/openshift/real/release.py says what the tree looks like.
    """
    from lab import kube_vip, metallb

    directory.mkdir(parents=True, exist_ok=True)
    known = {kube_vip.image(): kube_vip.KUBE_VIP.cached(), **metallb.images()}
    for image, program in known.items():
        if program is None:
            continue
        target = directory / image
        (target / "bin").mkdir(parents=True, exist_ok=True)
        place = target / "bin" / program.name
        place.unlink(missing_ok=True)
        try:
            place.hardlink_to(program.resolve())  # they are large, and nobody changes them
        except OSError:
            shutil.copyfile(program, place)
        (target / "entrypoint").write_text(f"{program.name}\n")
    if release is not None:
        release.publish(directory)


def _publish_simulated(boot: Path) -> dict[str, Any]:
    """Small files with real hashes: simulated machines fetch and verify them like any other.

    What a real live ISO has from Microsoft, the simulated one says to have.
    """
    from lab.live_iso.coreos import BIOS_BOOT
    from lab.node_image.image import publish

    sha256 = hashlib.sha256(_SIMULATED_ROOTFS.encode()).hexdigest()
    documents: list[dict[str, Any]] = []
    for architecture in ARCHITECTURES:
        contents = {
            # Firmware starts no kernel of another architecture: lab/machines/simulated/firmware.py.
            "kernel": json.dumps({"kind": "simulated-kernel", "architecture": architecture}),
            # Like CoreOS's initramfs it knows the one root file system that it will boot.
            "initramfs": json.dumps({"kind": "simulated-initramfs", "rootfs_sha256": sha256}),
            "rootfs": _SIMULATED_ROOTFS,
            # What the simulated coreos-installer writes: lab/machines/simulated/programs/installer.py.
            "disk": json.dumps({"kind": "simulated-disk-image", "os_release": _SIMULATED_ROOTFS}),
        }
        signed = json.dumps({"kind": "simulated-efi-boot", "signed": True}).encode()
        isolinux = {path: b"simulated" for path in BIOS_BOOT if architecture == "x86_64"}
        encoded = {name: text.encode() for name, text in contents.items()}
        options: dict[str, Any] = {"architecture": architecture, "disk_format": "raw", "bios_boot": isolinux}
        documents.append(publish(boot, BASE_URL, SIMULATED_RELEASE, encoded, signed, **options))
    artifacts = {name: each for document in documents for name, each in document["architectures"].items()}
    return {**documents[0], "architectures": artifacts}
