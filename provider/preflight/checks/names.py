"""Preflight check: are the names of the machines and of the project free, and the address of the API?"""

from __future__ import annotations

import ipaddress

from metal_ipi.provider.platforms.equinix_metal.documents import id_of
from metal_ipi.provider.preflight.findings import Finding, error, ok, warning
from metal_ipi.provider.preflight.subject import Subject

NAME = "names"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per collision."""
    problems = [*await _machines(subject), *await _project(subject), *await _address(subject)]
    return problems or [ok("no machine, project or address is in conflict")]


async def _machines(subject: Subject) -> list[Finding]:
    """Reports machines of other owners with the same host names. The check `runs` reports those of other runs of this
    stack."""
    wanted = {name for order in subject.orders.machines for name in order.hostnames}
    return [
        error(
            f"the project has a machine {device['hostname']} ({device['id']}) that is not this stack's",
            "set clusterName to another one, delete that machine (`make sweep` finds what stacks left),"
            " or use another project",
        )
        for device in await subject.metal.devices()
        if device.get("hostname") in wanted and not subject.carries_our_marks(device)
    ]


async def _project(subject: Subject) -> list[Finding]:
    """Reports another project with the name of ours. The check `runs` reports those of other runs of this stack."""
    return [
        error(
            f"the organization has a project {subject.plan.project_name} ({account.project}) already",
            "set platform.projectId to its id to use it, or platform.projectName to another name",
        )
        for account in await subject.projects_of_its_name()
        if not await subject.is_our_project(account)
    ]


async def _address(subject: Subject) -> list[Finding]:
    """Checks the API address that the settings name. An address that the platform reserves needs no check."""
    if subject.plan.api_address is None:
        return []
    address = ipaddress.ip_address(subject.plan.api_address)
    ours = {str(device["id"]) for device in await subject.metal.devices() if subject.is_ours(device)}
    for block in await subject.metal.blocks():
        if not block.get("network") or address not in _network(block):
            continue  # a block that waits for approval has no addresses yet
        for assignment in block.get("assignments") or ():
            device = id_of(assignment.get("assigned_to") or {})
            if address in _network(assignment) and device and device not in ours:
                return [_in_use(address, f"is assigned to device {device}")]
        if block.get("management"):
            return [_in_use(address, "belongs to a machine's own subnet")]
        return []
    return [
        warning(
            f"apiAddress.address {address} is in no block of the project",
            "remove it, so that `up` reserves one; or make sure that it is routed to the machine that announces it "
            "here",
        )
    ]


def _in_use(address: object, why: str) -> Finding:
    return error(
        f"apiAddress.address {address} is in use: it {why}",
        "set it to an address of a reserved block that nothing uses, or remove it, so that `up` reserves one",
    )


def _network(block: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    assert isinstance(block, dict)
    return ipaddress.ip_network(f"{block['network']}/{block['cidr']}", strict=False)
