"""A machine as a libvirt domain: the least hardware that boots from network and disk and has a serial console."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from lab.machines.base import BootDevice, MachineSpec

ARCHITECTURE = "x86_64"
"""The architecture of all libvirt machines."""
TB_CACHE_MIB = 64
"""QEMU's cache of translated code, per machine; more does not make booting faster."""
OVMF = ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd")
"""UEFI firmware, and what its variables are when a machine is new (package ovmf)."""

SECURE_OVMF = ("/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd")
"""The same with Secure Boot, and with the keys that servers come with: Microsoft's."""
MEDIUM = "medium.iso"
"""The file in a machine's directory that is the disc in its drive."""

_CPU_FEATURES = ("rdrand", "ssse3", "sse4.1", "sse4.2", "popcnt")
_ROTATION = {True: "7200", False: "1"}
"""A disk's rotations per minute; 1 says that it does not rotate (SCSI Block Commands, VPD page B1h)."""


def domain_xml(
    spec: MachineSpec, *, bridge: str, directory: str, order: Sequence[BootDevice] = ("network",), resets: bool = True
) -> str:
    """The domain of a machine that is emulated in software; its files are in `directory`.

    An id that is an UUID is the machine's own, too. It boots from what `order` says: of the disks, the first; it has a
    drive with a disc only while that is among it. A machine that resets itself boots again from the same, or, unless
    `resets`, ends. Disks are SCSI, for only those can say whether they rotate; they are written without waiting for the
    host's disk, for no lab outlives its host. Both serial ports print into `console.log`: Metal's x86 machines have
    theirs on the second one (ttyS1), the firmware uses the first.
    """
    there = [device for device in order if device != "disk" or spec.disks]
    ranks = {device: f"<boot order='{rank}'/>" for rank, device in enumerate(there, start=1)}
    disks = "".join(
        f"""
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='unsafe' discard='unmap'/>
      <source file={quoteattr(f"{directory}/{disk_file(disk.serial)}")}/>
      <target dev='sd{chr(ord("a") + number)}' bus='scsi' rotation_rate='{_ROTATION[disk.rotational]}'/>
      <serial>{escape(disk.serial)}</serial>
      {ranks.get("disk", "") if number == 0 else ""}
    </disk>"""
        for number, disk in enumerate(spec.disks)
    )
    drive = f"""
    <disk type='file' device='cdrom'>
      <driver name='qemu' type='raw'/>
      <source file={quoteattr(f"{directory}/{MEDIUM}")}/>
      <target dev='sdz' bus='sata'/>
      <readonly/>
      {ranks.get("cd", "")}
    </disk>"""
    further = "".join(
        f"""
    <interface type='bridge'>
      <mac address='{mac}'/>
      <source bridge='{bridge}'/>
      <model type='virtio'/>
      <rom enabled='no'/>
    </interface>"""
        for mac in spec.further_macs
    )
    console = f"<source path={quoteattr(f'{directory}/console.log')} append='on'/>"
    return f"""\
<domain type='qemu'>
  <name>{spec.id}</name>{_uuid(spec.id)}
  <title>{escape(spec.hostname)}</title>
  <memory unit='MiB'>{spec.memory_mib}</memory>
  <vcpu>{spec.cpus}</vcpu>
  {_firmware(spec, directory)}
  <features>
    <acpi/>{"<smm state='on'/>" if spec.secure_boot else ""}
    <tcg><tb-cache unit='MiB'>{TB_CACHE_MIB}</tb-cache></tcg>
  </features>
  <cpu mode='custom' match='exact' check='none'>
    <model>qemu64</model>
    {"".join(f"<feature policy='require' name='{name}'/>" for name in _CPU_FEATURES)}
  </cpu>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>{"restart" if resets else "destroy"}</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    <serial type='file'>{console}<target port='0'/></serial>
    <serial type='file'>{console}<target port='1'/></serial>
    <interface type='bridge'>
      <mac address='{spec.mac}'/>
      <source bridge='{bridge}'/>
      <model type='virtio'/>
      {ranks.get("network", "")}
    </interface>{further}
    {"<controller type='scsi' model='virtio-scsi'/>" if spec.disks else ""}{disks}{drive if "cd" in order else ""}
  </devices>
</domain>
"""


def _uuid(identity: str) -> str:
    try:
        return f"<uuid>{uuid.UUID(identity)}</uuid>"
    except ValueError:
        return ""


def _firmware(spec: MachineSpec, directory: str) -> str:
    """BIOS, or UEFI, which keeps its variables in a file of the machine.

    Secure Boot keeps them in system management mode, which only the machine q35 has.
    """
    machine, loader = "q35" if spec.secure_boot else "pc", ""
    if spec.firmware == "uefi" or spec.secure_boot:
        code, variables = SECURE_OVMF if spec.secure_boot else OVMF
        secure, kept = (" secure='yes'", "nvram-secure.fd") if spec.secure_boot else ("", "nvram.fd")
        loader = f"<loader readonly='yes'{secure} type='pflash'>{code}</loader>"
        loader += f"<nvram template='{variables}'>{directory}/{kept}</nvram>"
    return f"<os><type arch='{ARCHITECTURE}' machine='{machine}'>hvm</type>{loader}<bios useserial='yes'/></os>"


def has_uefi(*, secure: bool = False) -> bool:
    """Whether there is UEFI firmware on this system, with Secure Boot if that is wanted."""
    return all(Path(path).exists() for path in (SECURE_OVMF if secure else OVMF))


def disk_file(serial: str) -> str:
    """The file in a machine's directory that is the disk of this serial number."""
    return f"disk-{serial}.img"
