"""Servers of your own, through Ironic.

    shared     plain data of the servers
    platform   claims the servers; which resource declares what
    machine    a permanent machine: a server that was claimed
    bootstrap  the bootstrap machine: a server that is lent, or a virtual machine

Servers are claimed, not ordered. The platform claims all of them, including the one that is lent to the bootstrap
machine before it is installed as a worker. Each server boots a disc made for it, which Ironic attaches as virtual
media; with the driver ipmi it boots its iPXE script from the network.
"""

from metal_ipi.components.machines.ironic.platform import Ironic
from metal_ipi.components.machines.ironic.shared import IronicArgs

__all__ = ["Ironic", "IronicArgs"]
