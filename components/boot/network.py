"""A machine's network where no DHCP server tells it, as kernel arguments.

Source: dracut.cmdline(7), which nm-initrd-generator(8) reads the same way.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class StaticNetwork:
    """One interface, with all that DHCP would say."""

    address: str
    """IPv4."""
    gateway: str
    """IPv4."""
    prefix: int
    """The network's prefix length."""
    hostname: str
    """The machine's full name."""
    interface: str
    """As `ip link` shows it."""
    nameservers: tuple[str, ...]
    """IPv4, in the order in which they are asked."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """`ip=` and `nameserver=`, as a live system gets them, and an installed one at every boot.

        They hold for the initramfs, which hands the network on to the system. CoreOS also keeps what its first boot was
        given (`coreos-installer --firstboot-args`), but only where nothing else configures a network by then.
        """
        mask = ipaddress.IPv4Network(f"0.0.0.0/{self.prefix}").netmask
        return (
            "rd.neednet=1",
            f"ip={self.address}::{self.gateway}:{mask}:{self.hostname}:{self.interface}:none",
            *(f"nameserver={server}" for server in self.nameservers),
        )
