"""Servers of your own, through Ironic.

    shared     plain data of the servers
    platform   claims them; who declares what
    machine    a machine that stays: a server that was claimed
    bootstrap  what does not stay: a server that is lent, or a virtual machine

A server is claimed, not ordered. All of them are claimed by the platform, also the one that is lent as the bootstrap
machine before it is installed as the worker that it is to be. Each boots a disc made for it, which Ironic attaches, or,
with the driver ipmi, its script from the network.
"""

from metal_ipi.components.machines.ironic.platform import Ironic
from metal_ipi.components.machines.ironic.shared import IronicArgs

__all__ = ["Ironic", "IronicArgs"]
