"""Servers that are had from Ironic, by openstacksdk.

connection   a session with its API
nodes        what becomes of a node: enrolled, claimed, worked on, given back
driver       what installations ask of a server
ids          ids of machines
"""

from __future__ import annotations

from metal_ipi.provider.platforms.ironic.driver import Ironic
from metal_ipi.provider.platforms.ironic.ids import MachineId

__all__ = ["Ironic", "MachineId"]
