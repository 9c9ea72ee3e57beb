"""Machines of an Equinix Metal project, through the official provider.

platform   the project, its keys and addresses, and which resource orders what
orders     settings that all orders share
shared     settings that all machines share
machine    a permanent machine: a device
spot       a worker from the spot market: a request, and the device that it gets
bootstrap  the bootstrap machine, which our own provider orders
networks   VLANs and gateways, and the machines whose bonds are in them

A machine is ordered with `custom_ipxe`: Metal chains to our iPXE script, and reports the machine as active as soon as
the script was served. So only SSH proves that it was installed, never its state (Equinix's custom iPXE documentation).
"""

from metal_ipi.components.machines.equinix_metal.networks import VlanSpec
from metal_ipi.components.machines.equinix_metal.platform import SSH_KEY_IDS, EquinixMetal, EquinixMetalArgs

__all__ = ["SSH_KEY_IDS", "EquinixMetal", "EquinixMetalArgs", "VlanSpec"]
