"""VLANs: numbered within a project and a metro.

The API's own words for what it refuses here are not written down anywhere we know of; these are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.metal_api.body import Body
from lab.metal_api.events.models import note
from lab.metal_api.places import place
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

LOWEST, HIGHEST = 2, 3999
AUTOMATIC = range(1000, 2000)
"""Where a number is taken from when none is asked for."""


@saved("virtual_networks", indexed=("project_id",))
@dataclass(kw_only=True)
class VirtualNetwork(Record):
    """A VLAN that ports and gateways of its project and metro can be in."""

    id: str
    project_id: str
    vxlan: int
    metro: str
    facility: str | None
    """Only of one that was asked for in a facility: other facilities of its metro cannot use it."""
    created_at: str
    description: str = ""
    tags: list[str] = field(default_factory=list[str])


def networks_of(account: Account, project_id: str) -> list[VirtualNetwork]:
    """A project's VLANs, in the order in which they were made."""
    return account.table(VirtualNetwork).where("project_id", project_id)


def create(account: Account, project_id: str, document: Json) -> VirtualNetwork:
    """A new VLAN, with the number asked for or the lowest free one. Reports every problem at once."""
    body = Body(document)
    metro, facility = place(body)
    taken = {entry.vxlan for entry in networks_of(account, project_id) if entry.metro == metro}
    wanted, description, tags = body.integer("vxlan"), body.text("description"), body.texts("tags")
    if wanted is None:
        wanted = next((number for number in AUTOMATIC if number not in taken), 0)
        if not wanted:
            body.problems.append(f"Vxlan can't be blank: {AUTOMATIC.start} to {AUTOMATIC.stop - 1} are all in use")
    elif not LOWEST <= wanted <= HIGHEST:
        body.problems.append(f"Vxlan must be from {LOWEST} to {HIGHEST}")
    elif wanted in taken:
        body.problems.append("Vxlan has already been taken")
    body.check()
    network = account.table(VirtualNetwork).add(
        VirtualNetwork(
            id=account.chance.uuid(),
            project_id=project_id,
            vxlan=wanted,
            metro=metro,
            facility=facility,
            created_at=account.now(),
            description=description or "",
            tags=tags or [],
        )
    )
    about = [f"virtual-networks/{network.id}"]
    note(account, "virtual_network.created", f"VLAN {wanted} created in {metro}", project_id=project_id, about=about)
    return network


def update(network: VirtualNetwork, document: Json) -> None:
    """Change description and tags, whichever are given."""
    body = Body(document)
    description, tags = body.text("description"), body.texts("tags")
    body.check()
    network.description = network.description if description is None else description
    network.tags = network.tags if tags is None else tags


def named(account: Account, project_id: str, metro: str, vnid: object) -> VirtualNetwork | None:
    """The VLAN of a project and metro that is named by its id or by its number, as text or not."""
    for network in networks_of(account, project_id):
        if network.metro == metro and str(vnid) in (network.id, str(network.vxlan)):
            return network
    return None
