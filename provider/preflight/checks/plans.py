"""Preflight check: do plan, operating system and architecture fit together, and does the metro or facility offer the
plan?

Only the plans of machines that are still to be ordered matter: existing machines keep their plan.
"""

from __future__ import annotations

from metal_ipi.provider.orders import ANY, MachineOrder
from metal_ipi.provider.platforms.equinix_metal.documents import id_of
from metal_ipi.provider.preflight.account import Document
from metal_ipi.provider.preflight.findings import Finding, error, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "plans"
_ARM = "arm64"
"""Suffix of plans with ARM processors (c3.large.arm64). The names of the others end in x86."""
SPOT = "spot_market"


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding per order that is impossible; one for all the others together."""
    account = subject.metal
    plans, systems = await account.plans(), await account.operating_systems()
    problems = await _place(subject)
    ordered = [order for order, _ in await subject.missing()]
    for order in ordered:
        plan = plans.get(order.plan)
        if plan is None:
            near = ", ".join(sorted(slug for slug in plans if slug.split(".")[0] == order.plan.split(".")[0]))
            problems.append(_wrong(order, "Metal has no such plan", f"take one of {near or ', '.join(sorted(plans))}"))
            continue
        problems += [*_architecture(order, subject.plan.architecture), *_system(order, plan, systems)]
        problems += await _offered(subject, order, plan)
        if order.spot_max_price is not None and SPOT not in (plan.get("deployment_types") or ()):
            problems.append(
                _wrong(order, "the spot market does not have it", "take another plan, or remove platform.spot")
            )
    what = ", ".join(sorted({order.plan for order in ordered})) or "no machine is ordered"
    return problems or [ok(what)]


async def _place(subject: Subject) -> list[Finding]:
    """Reports a metro or facilities that do not exist."""
    orders, account = subject.orders, subject.metal
    if orders.metro is not None:
        kind, known, unknown = "metro", await account.metros(), [orders.metro]
    else:
        kind, known, unknown = "facility", await account.facilities(), [c for c in orders.facilities if c != ANY]
    return [
        error(f"Metal has no {kind} {code}", f"take one of {', '.join(sorted(known))}")
        for code in unknown
        if code not in known
    ]


def _architecture(order: MachineOrder, architecture: str) -> list[Finding]:
    is_arm = order.plan.endswith(_ARM)
    if is_arm == (architecture == "aarch64"):
        return []
    return [
        _wrong(
            order,
            f"its processors are {'aarch64' if is_arm else 'x86_64'}, and {architecture} is to be booted",
            f"take a plan of {architecture}, or set boot.architecture (one for the whole cluster)",
        )
    ]


def _system(order: MachineOrder, plan: Document, systems: dict[str, Document]) -> list[Finding]:
    system = systems.get(order.operating_system)
    # Older lists have slugs, newer ones ids and references.
    fits = {each if isinstance(each, str) else id_of(each) for each in (system or {}).get("provisionable_on") or ()}
    if system is not None and fits & {order.plan, str(plan.get("id")), str(plan.get("name")), str(plan.get("class"))}:
        return []
    return [_wrong(order, f"{order.operating_system} cannot be provisioned on it", "take another plan")]


async def _offered(subject: Subject, order: MachineOrder, plan: Document) -> list[Finding]:
    """Whether the metro or facility offers the plan at all, regardless of capacity. A plan without such a list
    passes."""
    orders = subject.orders
    member, known = (
        ("available_in_metros", await subject.metal.metros())
        if orders.metro is not None
        else ("available_in", await subject.metal.facilities())
    )
    listed = plan.get(member)
    codes = [orders.metro] if orders.metro is not None else list(orders.facilities)
    if listed is None or ANY in codes or order.reservations:
        return []
    there = {id_of(each) for each in listed} | {str(each.get("code")) for each in listed}
    if any(code in there or str(known.get(code or "", {}).get("id")) in there for code in codes):
        return []
    offering = sorted(code for code, each in known.items() if str(each.get("id")) in there or code in there)
    return [
        _wrong(order, f"{orders.place} does not offer it", f"take another plan, or one of {', '.join(offering) or '-'}")
    ]


def _wrong(order: MachineOrder, why: str, remedy: str) -> Finding:
    key = {"bootstrap": "bootstrapPlan", "control-plane": "controlPlanePlan"}.get(order.role, "workerPlan")
    return error(f"platform.{key} {order.plan}: {why}", remedy)
