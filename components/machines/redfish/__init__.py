"""Servers with a BMC, through our own provider (sushy).

platform   the servers, and who declares what
shared     what all machines have in common
machine    a machine that stays: a server that is claimed
bootstrap  the machine that does not stay: a server that is lent, or a virtual machine

A server is claimed, not ordered: its BMC is asked what it is, and a server that runs something that this stack did not
install is refused unless the configuration consents. The platform delivers no userdata: a server's Ignition comes from
its installer, and its boot script is a file of the boot server, named after the server's MAC address.
"""

from metal_ipi.components.machines.redfish.platform import Redfish
from metal_ipi.components.machines.redfish.shared import RedfishArgs

__all__ = ["Redfish", "RedfishArgs"]
