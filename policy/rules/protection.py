"""What must be protected from being deleted by mistake."""

from __future__ import annotations

from collections.abc import Iterator

from .base import Given, Resource, Rule, strings
from .machines import is_control_plane

_STATEFUL = (
    "metal-ipi:index:ClusterKeys",
    "equinix-metal:index/project:Project",
    "equinix-metal:index/reservedIpBlock:ReservedIpBlock",
)


def _check(resource: Resource, given: Given) -> Iterator[str]:
    if resource.protected:
        return
    if resource.type in strings(RULE.parameter(given, "types")) or is_control_plane(resource):
        yield (
            f"{resource.name} is not protected, and what it holds cannot be made again: set `metal-ipi:protect` to"
            " true (in a program of your own: ResourceOptions(protect=True))"
        )


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
