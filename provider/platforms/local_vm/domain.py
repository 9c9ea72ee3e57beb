"""The libvirt description of the virtual machine, and the mark that says which cluster it belongs to.

Source: https://libvirt.org/formatdomain.html, formatcaps.html. libvirt keeps elements below <metadata> unchanged, one
for each name space.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from xml.etree import ElementTree as ET

from metal_ipi.provider.resources.ephemeral_machine import LocalVmArgs

ARCHITECTURE = "x86_64"
"""The only architecture of the virtual machine; others boot differently."""
_SPACE = "urn:metal-ipi:machine"
_MARK = f"{{{_SPACE}}}machine"
ET.register_namespace("metal-ipi", _SPACE)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Our mark in a domain's metadata."""

    cluster: str
    """The cluster's domain."""
    hostname: str
    script: str
    """`boot_tree.digest` of the script that it boots."""


def xml(spec: LocalVmArgs, mark: Mark, *, accelerated: bool) -> str:
    """The domain: no disk, one network card from which it boots (or a boot image), a serial console."""
    domain = ET.Element("domain", type="kvm" if accelerated else "qemu")
    _text(domain, "name", spec.domain)
    _text(domain, "title", f"bootstrap machine of {spec.cluster}, removed within the same up")
    ET.SubElement(ET.SubElement(domain, "metadata"), _MARK, asdict(mark))
    _text(domain, "memory", str(spec.memory_mib), unit="MiB")
    _text(domain, "vcpu", str(spec.cpus))
    _text(ET.SubElement(domain, "os"), "type", "hvm", arch=ARCHITECTURE, machine="q35")
    ET.SubElement(ET.SubElement(domain, "features"), "acpi")
    ET.SubElement(domain, "cpu", mode="host-passthrough" if accelerated else "maximum")
    for event, action in (("poweroff", "destroy"), ("reboot", "restart"), ("crash", "destroy")):
        _text(domain, f"on_{event}", action)
    devices = ET.SubElement(domain, "devices")
    ET.SubElement(devices, "controller", type="usb", model="none")
    ET.SubElement(devices, "memballoon", model="none")
    ET.SubElement(devices, "serial", type="pty")
    _text(ET.SubElement(devices, "rng", model="virtio"), "backend", "/dev/urandom", model="random")
    if spec.boot_image is not None:
        drive = ET.SubElement(devices, "disk", type="file", device="cdrom")
        ET.SubElement(drive, "source", file=spec.boot_image)
        ET.SubElement(drive, "target", dev="sda", bus="sata")
        ET.SubElement(drive, "readonly")
        ET.SubElement(drive, "boot", order="1")
    card = ET.SubElement(devices, "interface", type="bridge")
    ET.SubElement(card, "mac", address=spec.mac)
    ET.SubElement(card, "source", bridge=spec.bridge)
    ET.SubElement(card, "model", type="virtio")
    if spec.boot_image is None:
        ET.SubElement(card, "boot", order="1")
    return ET.tostring(domain, encoding="unicode")


def mark_of(description: str) -> Mark | None:
    """The mark in a domain's description; None if the domain is not ours."""
    found = ET.fromstring(description).find(f"metadata/{_MARK}")  # noqa: S314 - libvirt's own words
    if found is None:
        return None
    return Mark(cluster=found.get("cluster", ""), hostname=found.get("hostname", ""), script=found.get("script", ""))


def accelerated(capabilities: str) -> bool | None:
    """Whether a host has KVM, by its capabilities; None: it cannot run such machines at all."""
    kinds = {
        kind.get("type")
        for architecture in ET.fromstring(capabilities).iterfind("guest/arch")  # noqa: S314 - libvirt's own words
        if architecture.get("name") == ARCHITECTURE
        for kind in architecture.iterfind("domain")
    }
    return "kvm" in kinds if kinds & {"kvm", "qemu"} else None


def _text(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = text
