"""A machine's static network: kernel arguments for its live system, a NetworkManager profile for its installed system.

The installed system gets one keyfile. Its kernel command line has nothing about the network: with `ip=` the initramfs
of every boot would configure the interface again, beside the bridge br-ex to which OVN moves the address.

The profile is needed, and brought, twice:

- `coreos-installer --copy-network` puts it on the boot partition. coreos-copy-firstboot-network.sh (in
  fedora-coreos-config) copies it into the initramfs of the first boot, in which Ignition fetches the node's config.
- The node's Ignition writes the same file to /etc. coreos-teardown-initramfs.sh would copy it there too, but only if
  Ignition brings no profile at all: one MachineConfig with a profile for another interface would prevent it.

configure-ovs.sh (machine-config-operator, templates/common/_base/files) clones the active profile of the interface with
the default route, and replaces type and interface for br-ex. So the profile is an ordinary one of type ethernet, bound
to its interface's name: a clone that is bound to a MAC address would match no OVS interface.

Sources: dracut.cmdline(7), which nm-initrd-generator(8) reads the same way; nm-settings-keyfile(5).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from uuid import NAMESPACE_DNS, uuid5

from metal_ipi.components.boot.ignition import NodeFile

PROFILES = "/etc/NetworkManager/system-connections"
"""The directory of NetworkManager's profiles."""
# A driver may load late; NetworkManager then waits 60 s, as nm-initrd-generator sets for an interface of `ip=`.
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
    """The interface's IPv6 address, besides IPv4."""

    address: str
    gateway: str
    prefix: int
    """The network's prefix length."""


@dataclass(frozen=True, kw_only=True)
class StaticNetwork:
    """One interface, with everything that DHCP would provide."""

    address: str
    """IPv4."""
    gateway: str
    """IPv4."""
    prefix: int
    """The network's prefix length."""
    hostname: str
    """The machine's full name."""
    interface: str
    """The interface's name, as `ip link` shows it."""
    nameservers: tuple[str, ...]
    """IPv4 addresses, in the order in which they are asked."""
    ipv6: StaticIpv6 | None = None
    """None: the interface has IPv4 only."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """`ip=` and `nameserver=` for a live system; its initramfs passes the network on to the system."""
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
        """The part of a machine's generation that stands for its network."""
        return self.arguments

    @property
    def profile(self) -> NodeFile:
        """The NetworkManager keyfile of an installed system."""
        text = _KEYFILE.format(
            interface=self.interface,
            uuid=uuid5(NAMESPACE_DNS, f"{self.interface}.{self.hostname}"),
            address=self.address,
            prefix=self.prefix,
            gateway=self.gateway,
            nameservers="".join(f"{server};" for server in self.nameservers),
        )
        text += _NO_IPV6 if self.ipv6 is None else _IPV6.format(**vars(self.ipv6))
        # NetworkManager ignores a profile that users other than root can read.
        return NodeFile(path=f"{PROFILES}/metal-ipi-{self.interface}.nmconnection", text=text, mode=0o600)

    @property
    def told(self) -> str:
        """One line that describes the network to people."""
        ipv6 = f" and {self.ipv6.address}/{self.ipv6.prefix}, gateway {self.ipv6.gateway}," if self.ipv6 else ""
        return (
            f"{self.address}/{self.prefix} on {self.interface}, gateway {self.gateway},{ipv6}"
            f" resolvers {' '.join(self.nameservers)}"
        )
