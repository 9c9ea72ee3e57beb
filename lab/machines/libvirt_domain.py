"""A machine as a libvirt domain: the least hardware that boots from the network and has a serial console."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from lab.machines.base import MachineSpec

TB_CACHE_MIB = 64
"""QEMU's cache of translated code, per machine; more does not make booting faster."""


def domain_xml(spec: MachineSpec, *, bridge: str, console: str) -> str:
    """The domain of a machine that is emulated in software.

    It boots from the network only. Both serial ports print into `console`: Metal's x86 machines have theirs on the
    second one (ttyS1), the firmware uses the first.
    """
    domain = ET.Element("domain", type="qemu")
    _text(domain, "name", spec.id)
    _text(domain, "title", spec.hostname)
    _text(domain, "memory", str(spec.memory_mib), unit="MiB")
    _text(domain, "vcpu", str(spec.cpus))
    system = ET.SubElement(domain, "os")
    _text(system, "type", "hvm", arch="x86_64", machine="pc")
    ET.SubElement(system, "boot", dev="network")
    ET.SubElement(system, "bios", useserial="yes")
    features = ET.SubElement(domain, "features")
    ET.SubElement(features, "acpi")
    _text(ET.SubElement(features, "tcg"), "tb-cache", str(TB_CACHE_MIB), unit="MiB")
    cpu = ET.SubElement(domain, "cpu", mode="custom", match="exact", check="none")
    _text(cpu, "model", "qemu64")
    for feature in ("rdrand", "ssse3", "sse4.1", "sse4.2", "popcnt"):
        ET.SubElement(cpu, "feature", policy="require", name=feature)
    for event, action in (("poweroff", "destroy"), ("reboot", "restart"), ("crash", "destroy")):
        _text(domain, f"on_{event}", action)
    devices = ET.SubElement(domain, "devices")
    ET.SubElement(devices, "controller", type="usb", model="none")
    ET.SubElement(devices, "memballoon", model="none")
    for port in ("0", "1"):
        serial = ET.SubElement(devices, "serial", type="file")
        ET.SubElement(serial, "source", path=console, append="on")
        ET.SubElement(serial, "target", port=port)
    interface = ET.SubElement(devices, "interface", type="bridge")
    ET.SubElement(interface, "mac", address=spec.mac)
    ET.SubElement(interface, "source", bridge=bridge)
    ET.SubElement(interface, "model", type="virtio")
    return ET.tostring(domain, encoding="unicode")


def _text(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = text
