"""NetworkManager keyfiles for VLANs on a bond of a machine's interfaces. Pure functions.

The interfaces form one bond, `bond0`, which gets its addresses by DHCP. Its mode and timers are those of Metal's own
images. One profile matches all ports, because their MAC addresses are not known before a machine is ordered.

Sources: nm-settings-keyfile(5), nm-settings-nmcli(5) (connection.multi-connect, match.interface-name); Metal's guide to
hybrid bonded mode (frames of VLANs arrive tagged, on the bond).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metal_ipi.components.boot.ignition import NodeFile
from metal_ipi.components.boot.network import PROFILES

_BOND = """\
[connection]
id=bond0
type=bond
interface-name=bond0

[bond]
mode=802.3ad
miimon=100
updelay=200
downdelay=200
lacp_rate=fast
xmit_hash_policy=layer3+4

[ipv4]
method=auto

[ipv6]
method=auto
"""
_PORT = """\
[connection]
id=bond0-port
type=ethernet
master=bond0
slave-type=bond
multi-connect=3

[match]
interface-name={interfaces};
"""
_VLAN = """\
[connection]
id={name}
type=vlan
interface-name=bond0.{vlan}

[vlan]
id={vlan}
parent=bond0

[ipv4]
method=manual
address1={address}
never-default=true

[ipv6]
method=disabled
"""


@dataclass(frozen=True, kw_only=True)
class VlanInterface:
    """A machine's address in a VLAN."""

    name: str
    """The name of the VLAN, used in the profile's name."""
    vlan: int
    """The VLAN id."""
    address: str
    """IPv4 address with the prefix length."""


def bond_files(vlans: Sequence[VlanInterface], interfaces: Sequence[str]) -> list[NodeFile]:
    """The keyfiles of one machine. `interfaces` are the names, or glob patterns, of the bond's ports."""
    texts = {
        "bond0": _BOND,
        "bond0-port": _PORT.format(interfaces=";".join(interfaces)),
        **{f"vlan-{vlan.name}": _VLAN.format(name=vlan.name, vlan=vlan.vlan, address=vlan.address) for vlan in vlans},
    }
    # NetworkManager ignores a profile that users other than root can read.
    return [NodeFile(path=f"{PROFILES}/{name}.nmconnection", text=text, mode=0o600) for name, text in texts.items()]
