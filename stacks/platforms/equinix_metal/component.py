"""From settings to the component that orders machines in a project."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from metal_ipi.components.machines.contract import Platform
from metal_ipi.components.machines.equinix_metal import SSH_KEY_IDS, EquinixMetal, EquinixMetalArgs, VlanSpec
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.platforms.contract import Keys
from metal_ipi.stacks.platforms.equinix_metal import orders
from metal_ipi.stacks.platforms.equinix_metal import settings as sections
from metal_ipi.stacks.sections.base import revealed


def component(
    settings: Settings,
    section: sections.EquinixMetal,
    keys: Keys,
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
    *,
    shared: pulumi.Output[Mapping[str, Any]] | None,
) -> Platform:
    """Declare the platform."""
    args = EquinixMetalArgs(
        stack=pulumi.get_stack(),
        cluster=settings.domain,
        run=keys.id,
        auth_token=revealed(section.auth_token),
        project_id=orders.project_id(settings, section),
        project_name=section.project_name,
        organization_id=orders.organization_id(settings, section),
        metro=section.metro,
        facilities=section.facilities,
        orders={order.role: order for order in orders.machines(settings, section)},
        addresses=orders.addresses(settings),
        lifetime_hours=section.lifetime_hours,
        custom_data=json.dumps(section.custom_data, sort_keys=True) if section.custom_data else None,
        tags=section.tags,
        networks=tuple(map(_vlan, section.networks)),
        bond_interfaces=section.bond_interfaces,
        ssh_public_key=keys.public_key,
        ssh_key_ids=None if shared is None else shared.apply(lambda found: [str(each) for each in found[SSH_KEY_IDS]]),
        after=after,
    )
    return EquinixMetal("platform", args, opts)


def _vlan(section: sections.Network) -> VlanSpec:
    return VlanSpec(
        order=orders.network(section),
        text=section.description,
        roles=section.roles,
        first={"control-plane": sections.FIRST_CONTROL_PLANE, "worker": sections.FIRST_WORKER},
    )
