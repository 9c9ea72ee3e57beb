"""What firmware starts: a kernel with its arguments, and where its root file system comes from."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lab.machines.base import Address


class BootError(Exception):
    """The boot stops here; the text is the console's last line."""


@dataclass(frozen=True, kw_only=True)
class Installed:
    """The file systems of an installed system."""

    root: Path
    boot: Path


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel that is about to run."""

    arguments: tuple[str, ...]
    initrds: tuple[bytes, ...] = ()
    """The beginnings of the initramfs images that it was given."""
    installed: Installed | None = None
    """Its root file system; None for a live system, which fetches one."""

    def values(self, name: str) -> list[str]:
        """All values of an argument."""
        return [entry.partition("=")[2] for entry in self.arguments if entry.startswith(f"{name}=")]

    def value(self, name: str) -> str | None:
        """The last value of an argument."""
        return (self.values(name) or [None])[-1]

    def rootfs_hash(self) -> str:
        """The hash of the root file system that the initramfs insists on.

        A simulated initramfs is a JSON object {"kind": "simulated-initramfs", "rootfs_sha256": ...}.
        """
        found = [digest for image in self.initrds if (digest := _embedded_hash(image)) is not None]
        if not found:
            raise BootError("Kernel panic - not syncing: no initramfs made for simulated machines among the initrds")
        return found[-1]

    def check_network(self, addresses: tuple[Address, ...]) -> None:
        """What `ip=` and `nameserver=` say must be what the network knows this machine by."""
        for value in self.values("ip"):
            if ":" not in value:
                continue  # dhcp, off and their like
            client, _, gateway, mask, *_ = [*value.split(":"), "", "", ""]
            mine = next((entry for entry in addresses if entry.address == client), None)
            if mine is None:
                raise BootError(f"dracut: ip={value}: nobody answers: {client} is not this machine's address")
            network = ipaddress.ip_interface(f"{mine.address}/{mine.prefix}")
            if mask not in (str(network.netmask), str(mine.prefix)) or gateway not in (mine.gateway, ""):
                raise BootError(f"dracut: ip={value}: the network is {network.network} with gateway {mine.gateway}")
        for value in self.values("nameserver"):
            try:
                ipaddress.ip_address(value)
            except ValueError as error:
                raise BootError(f"dracut: nameserver={value}: not an address") from error


def _embedded_hash(initramfs: bytes) -> str | None:
    """What a simulated initramfs says; None for any other image."""
    try:
        document = json.loads(initramfs)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    fields = cast("dict[str, Any]", document)
    return str(fields.get("rootfs_sha256")) if fields.get("kind") == "simulated-initramfs" else None
