"""A machine's firmware: its boot devices in turn, until one of them gives a kernel."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from uuid import NAMESPACE_URL, UUID, uuid5

import httpx

from lab.live_iso.reader import Reader
from lab.live_iso.writer import DiscError
from lab.machines.base import BootDevice, MachineSpec
from lab.machines.simulated import fetch, ipxe
from lab.machines.simulated.console import Console
from lab.machines.simulated.disk import Disk, Disks
from lab.machines.simulated.kernel import BootError, Installed, Kernel
from lab.machines.simulated.surroundings import Surroundings

_DENIED = 'BdsDxe: failed to load Boot0001 "{}": Access Denied'
"""EDK II's words for a boot loader that Secure Boot refuses."""
_IPXE = {"x86_64": "x86_64", "aarch64": "arm64"}
"""Architectures as iPXE's ${buildarch} has them."""


class _NothingHere(Exception):
    """This device has nothing to boot; the text is fit for the console."""


class Firmware:
    """Boots one machine."""

    def __init__(
        self, spec: MachineSpec, around: Surroundings, downloads: fetch.Downloads, disks: Disks, console: Console
    ) -> None:
        self._spec = spec
        self._around = around
        self._downloads = downloads
        self._disks = disks
        self._line = console.line

    async def boot(self, http: httpx.AsyncClient, order: Sequence[BootDevice]) -> Kernel:
        """Try one device after the other, again and again; raises BootError when one of them has a broken system."""
        while True:
            for device in order:
                try:
                    if device == "network":
                        return await self._network(http)
                    return self._disc() if device == "cd" else self._disk()
                except _NothingHere as nothing:
                    self._line(str(nothing))
            if list(order) != ["network"]:
                self._line("No bootable device")
            await self._around.sleep(self._around.boot_retry)

    async def _network(self, http: httpx.AsyncClient) -> Kernel:
        """DHCP and iPXE, until there is a kernel with its arguments."""
        first, mac = self._spec.addresses[0], self._spec.mac
        if self._spec.secure_boot:  # iPXE is not signed
            raise _NothingHere(_DENIED.format(f"UEFI PXEv4 (MAC:{mac.replace(':', '').upper()})"))
        line = self._line
        line("iPXE initialising devices...")
        line(f"net0: {mac} using simulated on {self._spec.hostname} (Ethernet)")
        line(f"Configuring (net0 {mac})...... ok")
        line(f"net0: {first.address}/{first.prefix} gw {first.gateway}")

        async def script(url: str) -> str:
            return await self._script(http, url)

        async def head(url: str) -> bytes:
            return (await download(http, self._downloads, url)).head

        start = self._spec.boot_url or f"{self._around.boot_server}/ipxe/{self._spec.id}"
        variables = {"net0/mac": mac, "mac": mac, "ip": first.address, "net0/ip": first.address}
        variables |= {"platform": "efi", "buildarch": _IPXE[self._spec.architecture], "hostname": self._spec.hostname}
        variables["uuid"] = machine_uuid(self._spec.id)
        try:
            boot = await ipxe.run(start, variables, script, line, head)
        except ipxe.IpxeError as error:
            raise _NothingHere(f"iPXE: {error}\r\nNo more network devices") from error
        if boot is None:
            raise _NothingHere("iPXE: the script is over\r\nNo more network devices")
        kernel = await self._download(http, boot.kernel)
        if _document(kernel.head).get("architecture", self._spec.architecture) != self._spec.architecture:
            raise _NothingHere(f"iPXE: {boot.kernel}: Exec format error\r\nNo more network devices")
        images = [(await self._download(http, url)).head for _, url in boot.initrds]
        return Kernel(arguments=boot.arguments, initrds=tuple(images))

    async def _script(self, http: httpx.AsyncClient, url: str) -> str:
        try:
            answer = await http.get(url)
        except httpx.HTTPError as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        if answer.status_code != 200:
            raise OSError(f"{answer.reason_phrase} (HTTP {answer.status_code})")
        self._line(f"{url}... ok")
        return answer.text

    async def _download(self, http: httpx.AsyncClient, url: str) -> fetch.Download:
        found = await download(http, self._downloads, url)
        self._line(f"{url}... ok ({found.size} bytes)")
        return found

    def _disc(self) -> Kernel:
        """A live ISO: shim, GRUB and its kernel, which are signed, or not; on a BIOS, ISOLINUX."""
        uefi = self._spec.firmware == "uefi"
        try:
            disc = Reader(Path(self._spec.medium))
            if self._spec.secure_boot and _document(disc.efi_boot()).get("signed") is not True:
                raise _NothingHere(_DENIED.format("UEFI QEMU DVD-ROM"))
            found = disc.booted(uefi=uefi)
        except (DiscError, OSError) as error:
            raise _NothingHere(f"Boot failed: {error}") from error
        if _document(found.kernel).get("architecture", self._spec.architecture) != self._spec.architecture:
            raise _NothingHere(f"error: the kernel is not {self._spec.architecture}")
        self._line("Welcome to GRUB!" if uefi else "ISOLINUX")
        if self._spec.secure_boot:
            self._line("EFI stub: UEFI Secure Boot is enabled.")
        return Kernel(arguments=found.arguments, initrds=tuple(map(_plain, found.initrds)))

    def _disk(self) -> Kernel:
        """The first disk with a boot sector, whatever that leads to."""
        disk = next((entry for entry in self._disks.all if entry.has_boot_sector()), None)
        if disk is None:
            raise _NothingHere("Boot failed: not a bootable disk")
        self._line(f"Booting from Hard Disk ({disk.serial})...")
        return grub(disk)


def _plain(image: bytes) -> bytes:
    """An initramfs as the kernel decompresses it: xz, or as it is."""
    if not image.startswith(b"\xfd7zXZ"):
        return image
    try:
        return lzma.LZMADecompressor().decompress(image)
    except lzma.LZMAError as error:
        raise BootError(f"Initramfs unpacking failed: XZ-compressed data is corrupt ({error})") from error


def _document(file: bytes) -> dict[str, Any]:
    """The content of a file of the lab's simulated stream; empty for any other file."""
    try:
        document = json.loads(file)
    except ValueError:
        return {}
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def grub(disk: Disk) -> Kernel:
    """What GRUB starts from a disk: the newest entry of the Boot Loader Specification on its boot partition."""
    boot, root = disk.labelled("boot"), disk.labelled("root")
    entries = sorted((boot.directory / "loader/entries").glob("*.conf")) if boot is not None else []
    if boot is None or not entries:
        raise BootError("error: no such partition.\r\nEntering rescue mode...\r\ngrub rescue> ")
    if root is None:
        raise BootError("systemd[1]: Timed out waiting for device /dev/disk/by-label/root.")
    options = re.search(r"(?m)^options (.*)$", entries[-1].read_text())
    if options is None:
        raise BootError(f"error: {entries[-1].name} has no options.\r\ngrub> ")
    arguments = options.group(1).replace("$ignition_firstboot", _first_boot(boot.directory)).split()
    image = f"BOOT_IMAGE=(hd0,gpt3)/{entries[-1].stem}/vmlinuz"
    return Kernel(arguments=(image, *arguments), installed=Installed(root=root.directory, boot=boot.directory))


def _first_boot(boot: Path) -> str:
    """Kernel arguments of the first boot only: as long as the stamp is there, which may name the network."""
    stamp = boot / "ignition.firstboot"
    if not stamp.exists():
        return ""
    network = re.search(r'ignition_network_kcmdline="([^"]*)"', stamp.read_text())
    return f"ignition.firstboot {network.group(1) if network else ''}"


async def download(http: httpx.AsyncClient, downloads: fetch.Downloads, url: str) -> fetch.Download:
    """Fetch a boot file; a failure ends the boot."""
    try:
        return await downloads.get(http, url)
    except (fetch.FetchError, httpx.HTTPError) as error:
        raise BootError(f"{url}... {type(error).__name__}: {error}") from error


def machine_uuid(machine_id: str) -> str:
    """The UUID in SMBIOS: the machine's id if that is a UUID, else one derived from it."""
    try:
        return str(UUID(machine_id))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, machine_id))
