"""A machine as a libvirt domain: the least hardware that boots from network and disk and has a serial console."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as ET

from lab.machines.base import BootDevice, MachineSpec

ARCHITECTURE = "x86_64"
"""What all of them are."""
TB_CACHE_MIB = 64
"""QEMU's cache of translated code, per machine; more does not make booting faster."""
OVMF = ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd")
"""UEFI firmware, and what its variables are when a machine is new (package ovmf)."""

SECURE_OVMF = ("/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd")
"""The same with Secure Boot, and with the keys that servers come with: Microsoft's."""
MEDIUM = "medium.iso"
"""The file in a machine's directory that is the disc in its drive."""

_ROTATION = {True: "7200", False: "1"}
"""A disk's rotations per minute; 1 says that it does not rotate (SCSI Block Commands, VPD page B1h)."""


def domain_xml(
    spec: MachineSpec, *, bridge: str, directory: str, order: Sequence[BootDevice] = ("network",), resets: bool = True
) -> str:
    """The domain of a machine that is emulated in software; its files are in `directory`.

    An id that is an UUID is the machine's own, too. It boots from what `order` says: of the disks, the first; it has a
    drive with a disc only while that is among it. A machine that resets itself boots again from the same, or, unless
    `resets`, ends. Disks are SCSI, for only those can say whether they rotate. Both serial ports print into
    `console.log`: Metal's x86 machines have theirs on the second one (ttyS1), the firmware uses the first.
    """
    domain = ET.Element("domain", type="qemu")
    _text(domain, "name", spec.id)
    with suppress(ValueError):
        _text(domain, "uuid", str(uuid.UUID(spec.id)))
    _text(domain, "title", spec.hostname)
    _text(domain, "memory", str(spec.memory_mib), unit="MiB")
    _text(domain, "vcpu", str(spec.cpus))
    features = _firmware(domain, spec, directory)
    _text(ET.SubElement(features, "tcg"), "tb-cache", str(TB_CACHE_MIB), unit="MiB")
    cpu = ET.SubElement(domain, "cpu", mode="custom", match="exact", check="none")
    _text(cpu, "model", "qemu64")
    for feature in ("rdrand", "ssse3", "sse4.1", "sse4.2", "popcnt"):
        ET.SubElement(cpu, "feature", policy="require", name=feature)
    for event, action in (
        ("poweroff", "destroy"),
        ("reboot", "restart" if resets else "destroy"),
        ("crash", "destroy"),
    ):
        _text(domain, f"on_{event}", action)
    devices = ET.SubElement(domain, "devices")
    ET.SubElement(devices, "controller", type="usb", model="none")
    ET.SubElement(devices, "memballoon", model="none")
    for port in ("0", "1"):
        serial = ET.SubElement(devices, "serial", type="file")
        ET.SubElement(serial, "source", path=f"{directory}/console.log", append="on")
        ET.SubElement(serial, "target", port=port)
    interface = ET.SubElement(devices, "interface", type="bridge")
    ET.SubElement(interface, "mac", address=spec.mac)
    ET.SubElement(interface, "source", bridge=bridge)
    ET.SubElement(interface, "model", type="virtio")
    bootable = {"network": interface}
    if spec.disks:
        ET.SubElement(devices, "controller", type="scsi", model="virtio-scsi")
    for number, disk in enumerate(spec.disks):
        element = ET.SubElement(devices, "disk", type="file", device="disk")
        # Written without waiting for the host's disk: no lab outlives its host.
        ET.SubElement(element, "driver", name="qemu", type="raw", cache="unsafe", discard="unmap")
        ET.SubElement(element, "source", file=f"{directory}/{disk_file(disk.serial)}")
        name = f"sd{chr(ord('a') + number)}"
        ET.SubElement(element, "target", dev=name, bus="scsi", rotation_rate=_ROTATION[disk.rotational])
        _text(element, "serial", disk.serial)
        bootable.setdefault("disk", element)
    if "cd" in order:
        drive = ET.SubElement(devices, "disk", type="file", device="cdrom")
        ET.SubElement(drive, "driver", name="qemu", type="raw")
        ET.SubElement(drive, "source", file=f"{directory}/{MEDIUM}")
        ET.SubElement(drive, "target", dev="sdz", bus="sata")
        ET.SubElement(drive, "readonly")
        bootable["cd"] = drive
    for rank, device in enumerate((device for device in order if device in bootable), start=1):
        ET.SubElement(bootable[device], "boot", order=str(rank))
    return ET.tostring(domain, encoding="unicode")


def _firmware(domain: ET.Element, spec: MachineSpec, directory: str) -> ET.Element:
    """Its firmware; answers the domain's features."""
    system = ET.SubElement(domain, "os")
    # Secure Boot keeps its variables in system management mode, which only this machine has.
    _text(system, "type", "hvm", arch=ARCHITECTURE, machine="q35" if spec.secure_boot else "pc")
    if spec.secure_boot:
        code, variables = SECURE_OVMF
        _text(system, "loader", code, readonly="yes", secure="yes", type="pflash")
        _text(system, "nvram", f"{directory}/nvram-secure.fd", template=variables)
    elif spec.firmware == "uefi":
        code, variables = OVMF
        _text(system, "loader", code, readonly="yes", type="pflash")
        _text(system, "nvram", f"{directory}/nvram.fd", template=variables)
    ET.SubElement(system, "bios", useserial="yes")
    features = ET.SubElement(domain, "features")
    ET.SubElement(features, "acpi")
    if spec.secure_boot:
        ET.SubElement(features, "smm", state="on")
    return features


def has_uefi(*, secure: bool = False) -> bool:
    """Whether there is UEFI firmware on this system, with Secure Boot if that is wanted."""
    return all(Path(path).exists() for path in (SECURE_OVMF if secure else OVMF))


def disk_file(serial: str) -> str:
    """The file in a machine's directory that is the disk of this serial number."""
    return f"disk-{serial}.img"


def _text(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = text
