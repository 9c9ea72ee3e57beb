"""The records of VLANs and of what is in them, which gateways and ports share."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.metal_api.records import Record, saved
from lab.metal_api.state import Account


@saved("virtual_networks", indexed=("project_id",))
@dataclass(kw_only=True)
class VirtualNetwork(Record):
    """A VLAN that bonds and gateways of its project and metro can be in."""

    project_id: str
    vxlan: int
    metro: str
    description: str = ""
    tags: list[str] = field(default_factory=list[str])


@saved("vlan_assignments", indexed=("device_id", "network_id"), of_device=True)
@dataclass(kw_only=True)
class VlanAssignment(Record):
    """A VLAN on a device's bond."""

    device_id: str
    network_id: str


def networks_of(account: Account, project_id: str) -> list[VirtualNetwork]:
    """A project's VLANs, in the order in which they were made."""
    return account.table(VirtualNetwork).where("project_id", project_id)
