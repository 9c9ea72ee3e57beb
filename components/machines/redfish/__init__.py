"""Servers with a BMC, through our own provider (sushy).

platform   the servers; which resource declares what
shared     data that all machines share
machine    a permanent machine: a server that is claimed
bootstrap  the bootstrap machine: a server that is lent, or a virtual machine

Servers are claimed, not ordered. A claim asks the server's BMC what runs on it, and refuses a system that this stack
did not install, unless the settings allow it. The platform delivers no userdata: a server's Ignition comes from its
installer, and its iPXE script is a file on the boot server, named after the server's MAC address.
"""

from metal_ipi.components.machines.redfish.platform import Redfish
from metal_ipi.components.machines.redfish.shared import RedfishArgs

__all__ = ["Redfish", "RedfishArgs"]
