"""Servers with a Redfish BMC, by sushy (https://docs.openstack.org/sushy).

Nothing is ordered and nothing is returned: a server is claimed, or lent for a while. Ids of machines:
`<server>/<identity>` for a claimed one, `<server>/<identity>/bootstrap/<mac>/<script>` for a lent one, where `server`
is a key of the provider's section `bmcs`, `identity` the System's UUID, and `script` the beginning of the SHA-512 of
the boot script it was lent for: so it is known again by what lies in the boot tree, and by nothing else.
"""

from __future__ import annotations

from metal_ipi.provider.platforms.redfish.driver import Redfish
from metal_ipi.provider.platforms.redfish.inventory import Disk, Inventory

__all__ = ["Disk", "Inventory", "Redfish"]
