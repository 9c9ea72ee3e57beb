"""Rule: which resources must be protected from deletion by mistake."""

from __future__ import annotations

from collections.abc import Iterator

from .base import Given, Resource, Rule, strings
from .machines import DEVICE, has_etcd, is_formed

_STATEFUL = (
    "metal-ipi:index:ClusterKeys",
    "equinix-metal:index/project:Project",
    "equinix-metal:index/reservedIpBlock:ReservedIpBlock",
)


def _check(resource: Resource, given: Given) -> Iterator[str]:
    if resource.protected:
        return
    stateful = resource.type in strings(RULE.parameter(given, "types"))
    if stateful or (has_etcd(resource) and not _may_be_ordered_again(resource, given)):
        yield (
            f"{resource.name} is not protected, and its content cannot be made again: set `metal-ipi:protect` to"
            " true (in a program of your own: ResourceOptions(protect=True))"
        )


def _may_be_ordered_again(resource: Resource, given: Given) -> bool:
    """Whether an earlier run has begun, and there is no cluster yet. Checked when the machine is declared, as the same
    run may create the cluster."""
    if resource.type != DEVICE:
        return False
    before = given.before()
    return bool(before) and not is_formed(before)


RULE = Rule(
    name="protect-stateful",
    description="Keys, projects, reserved addresses and control plane machines are protected.",
    parameters={
        "types": {
            "type": "array",
            "items": {"type": "string"},
            "default": list(_STATEFUL),
            "description": "Resource types that must be protected, beside control plane machines.",
        }
    },
    resource=_check,
)
