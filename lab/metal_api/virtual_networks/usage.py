"""What a VLAN is used by, which is what keeps it from being deleted."""

from __future__ import annotations

from lab.metal_api.devices.models import Device
from lab.metal_api.events.models import note
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.gateways.models import gateway_of
from lab.metal_api.ports.models import VlanAssignment
from lab.metal_api.state import Account
from lab.metal_api.virtual_networks.models import VirtualNetwork


def devices_in(account: Account, network: VirtualNetwork) -> list[Device]:
    """The devices with ports in a VLAN."""
    assignments = account.table(VlanAssignment).where("network_id", network.id)
    return [account.table(Device)[identity] for identity in dict.fromkeys(entry.device_id for entry in assignments)]


def delete(account: Account, network: VirtualNetwork) -> None:
    """Forget a VLAN that nothing uses."""
    problems: list[str] = []
    if devices_in(account, network):
        problems.append("Cannot delete a virtual network with ports assigned. Please unassign them first.")
    if gateway_of(account, network) is not None:
        problems.append("Cannot delete a virtual network with a metal gateway. Please delete it first.")
    if problems:
        raise Unprocessable(*problems)
    del account.table(VirtualNetwork)[network.id]
    note(account, "virtual_network.deleted", f"VLAN {network.vxlan} deleted", project_id=network.project_id)
