"""Machines of an Equinix Metal project, through the official provider.

platform   the project, its keys and addresses, and who orders what
orders     what all orders have in common
shared     what all machines have in common
machine    a machine that stays: a device
spot       a worker from the spot market: a request, and the device that it gets
bootstrap  the machine that does not stay, which our own provider orders
networks   VLANs and gateways, and whose bonds are in them

A machine is ordered with `custom_ipxe`: Metal chains to our iPXE script and calls the machine active as soon as the
script was served, so an install is proved by SSH and never by state (Equinix's custom iPXE documentation).
"""

from metal_ipi.components.machines.equinix_metal.networks import VlanSpec
from metal_ipi.components.machines.equinix_metal.platform import SSH_KEY_IDS, EquinixMetal, EquinixMetalArgs

__all__ = ["SSH_KEY_IDS", "EquinixMetal", "EquinixMetalArgs", "VlanSpec"]
