"""A machine's network where no DHCP server tells it: kernel arguments of a live system, a profile of an installed one.

The installed system gets one NetworkManager profile, a keyfile. Nothing of its network stands on its kernel command
line: `ip=` would have the initramfs of every boot configure the interface once more, beside the bridge br-ex that OVN
moves the address to.

How the profile gets there, and who needs it:

- `coreos-installer --copy-network` puts it on the boot partition. coreos-copy-firstboot-network.sh (in
  fedora-coreos-config) gives it to the initramfs of the first boot, in which Ignition fetches the node's configuration.
- The node's Ignition writes the same file to /etc. coreos-teardown-initramfs.sh would copy it there by itself, but only
  where Ignition brings no profile at all: one MachineConfig with a profile for another interface would take it away.

configure-ovs.sh (machine-config-operator, templates/common/_base/files) clones the active profile of the interface that
has the default route, and replaces type and interface for br-ex. So the profile is an ordinary one of type ethernet,
bound by its interface's name: bound by a MAC address, its clone would fit no OVS interface.

Sources: dracut.cmdline(7), which nm-initrd-generator(8) reads the same way; nm-settings-keyfile(5).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from uuid import NAMESPACE_DNS, uuid5

from metal_ipi.components.boot.ignition import NodeFile

PROFILES = "/etc/NetworkManager/system-connections"
"""Where NetworkManager has its profiles."""
# A driver may be loaded late; nm-initrd-generator lets NetworkManager wait as long for an interface of `ip=`.
_KEYFILE = """\
[connection]
id=metal-ipi-{interface}
uuid={uuid}
type=ethernet
interface-name={interface}
wait-device-timeout=60000

[ipv4]
method=manual
address1={address}/{prefix}
gateway={gateway}
dns={nameservers}
may-fail=false
"""
_NO_IPV6 = """
[ipv6]
method=disabled
"""
_IPV6 = """
[ipv6]
method=manual
address1={address}/{prefix}
gateway={gateway}
may-fail=false
"""


@dataclass(frozen=True, kw_only=True)
class StaticIpv6:
    """What the interface has of IPv6, beside IPv4."""

    address: str
    gateway: str
    prefix: int
    """The network's prefix length."""


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
    ipv6: StaticIpv6 | None = None
    """None: the interface has IPv4 alone."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """`ip=` and `nameserver=`, for a live system: its initramfs hands the network on to the system."""
        mask = ipaddress.IPv4Network(f"0.0.0.0/{self.prefix}").netmask
        return (
            "rd.neednet=1",
            f"ip={self.address}::{self.gateway}:{mask}:{self.hostname}:{self.interface}:none",
            *(
                f"ip=[{each.address}]::[{each.gateway}]:{each.prefix}:{self.hostname}:{self.interface}:none"
                for each in (self.ipv6,)
                if each is not None
            ),
            *(f"nameserver={server}" for server in self.nameservers),
        )

    @property
    def counted(self) -> tuple[str, ...]:
        """What stands for it in a machine's generation."""
        return self.arguments

    @property
    def profile(self) -> NodeFile:
        """The same as NetworkManager's keyfile, for an installed system."""
        text = _KEYFILE.format(
            interface=self.interface,
            uuid=uuid5(NAMESPACE_DNS, f"{self.interface}.{self.hostname}"),
            address=self.address,
            prefix=self.prefix,
            gateway=self.gateway,
            nameservers="".join(f"{server};" for server in self.nameservers),
        )
        text += _NO_IPV6 if self.ipv6 is None else _IPV6.format(**vars(self.ipv6))
        # NetworkManager leaves a profile alone that others than root can read.
        return NodeFile(path=f"{PROFILES}/metal-ipi-{self.interface}.nmconnection", text=text, mode=0o600)

    @property
    def told(self) -> str:
        """The same for people, one line."""
        ipv6 = f" and {self.ipv6.address}/{self.ipv6.prefix}, gateway {self.ipv6.gateway}," if self.ipv6 else ""
        return (
            f"{self.address}/{self.prefix} on {self.interface}, gateway {self.gateway},{ipv6}"
            f" resolvers {' '.join(self.nameservers)}"
        )
