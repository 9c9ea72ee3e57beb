"""Servers with a Redfish BMC, by sushy (https://docs.openstack.org/sushy).

Nothing is ordered or returned: a server is claimed, or lent for a while.
"""

from __future__ import annotations

from metal_ipi.provider.platforms.redfish.driver import Redfish
from metal_ipi.provider.platforms.redfish.inventory import Inventory

__all__ = ["Inventory", "Redfish"]
