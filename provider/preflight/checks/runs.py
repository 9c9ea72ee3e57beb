"""Preflight check: does everything that has this stack's tags belong to this installation (run)?

It may belong to another checkout, or to a state that was lost. Then the whole cluster would be ordered a second time.
"""

from __future__ import annotations

from metal_ipi.provider.platforms.equinix_metal.documents import machine_of
from metal_ipi.provider.preflight.account import Account
from metal_ipi.provider.preflight.findings import Finding, error, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "runs"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding that lists everything of other runs."""
    plan = subject.plan
    accounts = await subject.projects_of_its_name() if plan.project_name else [subject.metal]
    found = [
        f"project {account.project} has {', '.join(things)}"
        for account in accounts
        if (things := await _of(account, subject))
    ]
    if not found:
        return [ok("no resource with this stack's tags belongs to another run")]
    return [
        error(
            f"stack {plan.stack} with cluster {plan.domain} was ordered by another run, which this state does not "
            f"know: {'; '.join(found)}",
            "use the checkout (or the backend) that has its state; or, if that is lost and the listed resources are "
            f"not needed, `make sweep STACK={plan.stack} OF={plan.stack}`, which removes them (docs/sweep.md)",
        )
    ]


async def _of(account: Account, subject: Subject) -> list[str]:
    """What other runs have in a project, as texts with kind, name and id. Machines that are being removed are not
    listed."""
    requests = [{"id": each["id"], **(each.get("instance_parameters") or {})} for each in await account.spot_requests()]
    kinds = (
        ("machine", "hostname", [each for each in await account.devices() if not machine_of(dict(each)).leaving]),
        ("spot market request", "hostname", requests),
        ("reserved address", "network", await account.blocks()),
        ("VLAN", "vxlan", await account.networks()),
        ("SSH key", "label", await account.ssh_keys()),
    )
    return [
        f"{kind} {item.get(name)} ({item['id']})"
        for kind, name, items in kinds
        for item in items
        if subject.is_of_another_run(item)
    ]
