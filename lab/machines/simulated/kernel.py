"""What firmware starts: a kernel with its arguments, and where its root file system comes from."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.machines.base import Address
from lab.machines.simulated import archives, host_network, keyfile


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
    """The beginnings of the initramfs images that it was given, in order."""
    installed: Installed | None = None
    """Its root file system; None for a live system, which fetches one."""

    def values(self, name: str) -> list[str]:
        """All values of an argument."""
        return [entry.partition("=")[2] for entry in self.arguments if entry.startswith(f"{name}=")]

    def value(self, name: str) -> str | None:
        """The last value of an argument."""
        return (self.values(name) or [None])[-1]

    def rootfs_hash(self) -> str:
        """The hash of the root file system that the initramfs insists on."""
        wanted, _ = self._unpacked()
        if wanted is None:
            raise BootError("Kernel panic - not syncing: no initramfs made for simulated machines among the initrds")
        return wanted

    def config(self) -> bytes | None:
        """The Ignition that a live system was given in an archive; an installed one looks on its boot partition."""
        return self._unpacked()[1].get("config.ign") if self.installed is None else None

    def _unpacked(self) -> tuple[str | None, dict[str, bytes]]:
        try:
            return archives.unpacked(self.initrds)
        except archives.ArchiveError as error:
            raise BootError(str(error)) from error

    def profiles(self) -> list[Path]:
        """NetworkManager's profiles that hold for this boot: of the first one, those on the boot partition."""
        if self.installed is None:
            return []
        first = sorted((self.installed.boot / "coreos-firstboot-network").glob("*"))
        if "ignition.firstboot" in self.arguments:
            return first
        return sorted((self.installed.root / "etc/NetworkManager/system-connections").glob("*.nmconnection"))

    def embedded_profiles(self) -> dict[str, str]:
        """NetworkManager's profiles that a live system was given in an archive, by name."""
        files = {} if self.installed is not None else self._unpacked()[1]
        where = "etc/coreos-firstboot-network/"
        return {path.removeprefix(where): data.decode() for path, data in files.items() if path.startswith(where)}

    def check_host_network(
        self, profiles: list[Path], addresses: tuple[Address, ...], cards: Mapping[str, str]
    ) -> dict[str, host_network.Link]:
        """What nmstatectl's profiles make of the cards: the machine must be reached by what they say."""
        try:
            links = host_network.links(profiles, cards)
        except (keyfile.KeyfileError, ValueError) as error:
            raise BootError(f"NetworkManager: profile {error}") from error
        if self.values("ip"):
            raise BootError("NetworkManager: profiles and ip= both say what the network is")
        mine = {entry.address: entry for entry in addresses}
        for link in links.values():
            for each in link.addresses:
                if str(each.ip) in mine:
                    prefix = str(each.network.prefixlen)
                    _compare(f"NetworkManager: {link.name}", addresses, str(each.ip), prefix, link.gateway)
                    return links
        raise BootError(f"NetworkManager: nobody answers: no profile has one of {', '.join(mine)}")

    def check_ipv6(self, profiles: list[Path], own: Address | None) -> Address | None:
        """The machine's IPv6 address, where it will have it: it is told, or its network is left to routers.

        What profiles and `ip=` say of it must be what the network knows the machine by.
        """
        read = [keyfile.values_of(path) for path in profiles]
        said = [(values, values.get("ipv6.method", "auto")) for values in read if "connection.master" not in values]
        for values, method in said:
            if method != "manual":
                continue
            given = next(value for key, value in values.items() if key.startswith("ipv6.address"))
            ways = [value.split(",")[1] for value in values.values() if value.startswith("::/0,")]
            address, _, prefix = given.partition("/")
            return _checked("NetworkManager", own, address, prefix, values.get("ipv6.gateway") or (ways or [""])[0])
        static = [value for value in self.values("ip") if ":" in value]
        for value in static:
            if found := re.fullmatch(r"\[([0-9a-f:]+)\]::\[([0-9a-f:]+)\]:(\d+):[^:]*:[^:]*:none", value):
                return _checked(f"dracut: ip={value}", own, found[1], found[3], found[2])
        left_to_routers = any(method == "auto" for _, method in said) if said else not static
        return own if left_to_routers else None

    def check_network(self, addresses: tuple[Address, ...]) -> list[str]:
        """What `ip=`, `nameserver=` and profiles say must be what the network knows this machine by.

        What it answers is for the console.
        """
        told: list[str] = []
        for path in self.profiles():
            try:
                static = keyfile.read(path)
            except keyfile.KeyfileError as error:
                raise BootError(f"NetworkManager: profile {error}") from error
            if static is None:
                told.append(f"NetworkManager: profile {path.name} is left alone: it is of a bond, and there is none")
                continue
            if self.values("ip"):
                raise BootError(f"NetworkManager: profile {path.name} and ip= both say what the network is")
            where, prefix = f"NetworkManager: profile {path.name}", str(static.address.network.prefixlen)
            _compare(where, addresses, str(static.address.ip), prefix, str(static.gateway))
            told.append(f"NetworkManager: {static.interface}: {static.address} via {static.gateway}")
        for value in self.values("ip"):
            if ":" not in value:
                continue  # dhcp, off and their like
            if value.startswith("["):
                continue  # IPv6
            client, _, gateway, mask, *_ = [*value.split(":"), "", "", ""]
            _compare(f"dracut: ip={value}", addresses, client, mask, gateway)
        for value in self.values("nameserver"):
            try:
                ipaddress.ip_address(value)
            except ValueError as error:
                raise BootError(f"dracut: nameserver={value}: not an address") from error
        return told


def _checked(where: str, own: Address | None, address: str, prefix: str, gateway: str) -> Address:
    """A machine's IPv6 address, if it is what a profile or an argument says. Raises BootError."""
    if own is None or (address, prefix, gateway) != (own.address, str(own.prefix), own.gateway):
        known = f"{own.address}/{own.prefix} with gateway {own.gateway}" if own is not None else "not of IPv6"
        raise BootError(f"{where}: {address}/{prefix} via {gateway or 'no gateway'}: the network is {known}")
    return own


def _compare(where: str, addresses: Iterable[Address], address: str, mask: str, gateway: str) -> None:
    """Raise BootError where a static address is not what the network knows; a gateway may be left out (empty)."""
    mine = next((entry for entry in addresses if entry.address == address), None)
    if mine is None:
        raise BootError(f"{where}: nobody answers: {address} is not this machine's address")
    network = ipaddress.ip_interface(f"{mine.address}/{mine.prefix}")
    if mask not in (str(network.netmask), str(mine.prefix)) or gateway not in (mine.gateway, ""):
        raise BootError(f"{where}: the network is {mine.address}/{mine.prefix} with gateway {mine.gateway}")
