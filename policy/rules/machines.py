"""The machines of a stack, independent of the resource type that orders or claims them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .base import UNKNOWN, Resource, listed, mapping, strings

DEVICE = "equinix-metal:index/device:Device"
SPOT_REQUEST = "equinix-metal:index/spotMarketRequest:SpotMarketRequest"
EPHEMERAL = "metal-ipi:index:EphemeralMachine"
REDFISH = "metal-ipi:index:RedfishMachine"
IRONIC = "metal-ipi:index:IronicMachine"
INSTALLATION = "metal-ipi:index:Installation"
PREFLIGHT = "metal-ipi:index:Preflight"
PROVIDER = "pulumi:providers:metal-ipi"
STACK = "pulumi:pulumi:Stack"

GATE = "metal-ipi:index:Gate"

CONTROL_PLANE, ARBITER = "control-plane", "arbiter"
ETCD = (CONTROL_PLANE, ARBITER)
"""Roles whose machines run an etcd member."""
ROLES = ("bootstrap", CONTROL_PLANE, "worker")
"""Roles of ordered machines."""
ROLE_TAG = "metal-ipi:role="


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """One ordered machine, or several equal ones, which cost money."""

    what: str
    """Name for messages."""
    role: str
    """Empty if unknown."""
    plan: Any
    metro: Any
    facilities: list[str]
    spot: bool = False
    """Whether it comes from the spot market, and may be evicted for a higher bid."""
    always_pxe: bool = False
    user_data: Any = None
    tags: tuple[Any, ...] = ()


def ordered(resource: Resource) -> Iterator[Ordered]:
    """Yields the machines that a resource orders. A Preflight contains all machines of a stack, before the first one is
    ordered."""
    properties = resource.properties
    if resource.type == PREFLIGHT:
        orders = mapping(properties.get("orders"))
        for machine in map(mapping, listed(orders.get("machines"))):
            yield Ordered(
                what=f"the {machine.get('role')} machines",
                role=str(machine.get("role", "")),
                plan=machine.get("plan"),
                metro=orders.get("metro"),
                facilities=strings(orders.get("facilities")),
                spot=machine.get("spotMaxPrice") is not None,
            )
    elif resource.type == DEVICE or _is_ordered_for_a_while(resource):
        yield _one(resource, properties.get("userData"), properties)
    elif resource.type == SPOT_REQUEST:
        parameters = mapping(properties.get("instanceParameters"))
        place = {name: properties.get(name) for name in ("metro", "facilities")}
        yield _one(resource, parameters.get("userdata"), {**parameters, **place}, spot=True)


def _is_ordered_for_a_while(resource: Resource) -> bool:
    """Whether it is an ordered bootstrap machine, and not a lent server or a local virtual machine."""
    return resource.type == EPHEMERAL and resource.properties.get("platform") in {None, "equinix-metal"}


def _one(resource: Resource, user_data: Any, properties: Any, *, spot: bool = False) -> Ordered:
    tags = tuple(listed(properties.get("tags")))
    return Ordered(
        what=resource.name,
        role="bootstrap" if resource.type == EPHEMERAL else role_of(tags),
        plan=properties.get("plan"),
        metro=properties.get("metro"),
        facilities=strings(properties.get("facilities")),
        spot=spot,
        always_pxe=properties.get("alwaysPxe") is True,
        user_data=user_data,
        tags=tags,
    )


def role_of(tags: tuple[Any, ...]) -> str:
    """The role in a machine's tags; empty if there is none."""
    return next((tag.removeprefix(ROLE_TAG) for tag in strings(list(tags)) if tag.startswith(ROLE_TAG)), "")


def has_etcd(resource: Resource) -> bool:
    """Whether it is a machine with an etcd member: an ordered machine by its tags, or a claimed server by its host
    name."""
    if resource.type == DEVICE:
        return role_of(tuple(listed(resource.properties.get("tags")))) == CONTROL_PLANE
    named = re.search(rf"(^|-)({'|'.join(ETCD)})-\d+$", resource.text("hostname")) is not None
    return resource.type in (REDFISH, IRONIC) and named


def known(value: Any) -> bool:
    """Whether a value exists and is known in a preview."""
    return value is not None and value is not UNKNOWN


def is_formed(before: Iterable[Resource]) -> bool:
    """Whether the stack has a cluster with data in etcd: then the gate bootstrap-complete has passed. Before that,
    control plane machines may be replaced when what they boot changes."""
    return any(each.type == GATE and each.text("kind") == "bootstrap-complete" for each in before)
