"""Rule: which tags ordered resources must have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .base import Given, Resource, Rule, listed, strings
from .machines import DEVICE, EPHEMERAL, ROLE_TAG, SPOT_REQUEST, ordered

_RESERVED = "equinix-metal:index/reservedIpBlock:ReservedIpBlock"
_MARKS = ("metal-ipi", "metal-ipi:stack=", "metal-ipi:cluster=", "metal-ipi:run=")


def _check(resource: Resource, given: Given) -> Iterator[str]:
    tags = _tags(resource)
    if tags is None:
        return
    there = strings(tags)
    # A preview does not know the run yet.
    marks = _MARKS if len(there) == len(tags) else _MARKS[:-1]
    wanted = [*marks, *([] if resource.type == _RESERVED else [ROLE_TAG]), *strings(RULE.parameter(given, "required"))]
    missing = [each for each in wanted if not any(_is(tag, each) for tag in there)]
    if missing:
        yield (
            f"{resource.name} lacks the tag{'s' if len(missing) > 1 else ''} {', '.join(missing)}: without this "
            "program's tags leftovers of an interrupted run cannot be found; set your own in `metal-ipi:platform.tags`"
        )


def _is(tag: str, wanted: str) -> bool:
    return tag.startswith(wanted) and len(tag) > len(wanted) if wanted.endswith("=") else tag == wanted


def _tags(resource: Resource) -> list[Any] | None:
    if resource.type == _RESERVED:
        return listed(resource.properties.get("tags"))
    machines = list(ordered(resource)) if resource.type in {DEVICE, EPHEMERAL, SPOT_REQUEST} else []
    return list(machines[0].tags) if machines else None


RULE = Rule(
    name="required-tags",
    description="Whatever is ordered has the tags of its stack, cluster, role and run, and the tags that you require.",
    parameters={
        "required": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "Further tags; one that ends in = is a prefix, e.g. costcentre=.",
        }
    },
    resource=_check,
)
