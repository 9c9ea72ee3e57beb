"""The program of a hub's stack: the provisioning service."""

from __future__ import annotations

from typing import Any

import pulumi

from metal_ipi.components.provisioning.service import IronicService
from metal_ipi.provider.types import Provider, ProviderArgs
from metal_ipi.stacks.hub.arguments import arguments
from metal_ipi.stacks.hub.sections import HubSettings


def declare(settings: HubSettings, parent: pulumi.Resource | None = None) -> dict[str, pulumi.Input[Any]]:
    """Declare the components of the hub; returns the stack's outputs, by name."""
    child = pulumi.ResourceOptions(parent=parent)
    for remark in settings.provisioning.remarks:
        pulumi.log.info(remark)
    provider = Provider("metal-ipi", ProviderArgs(), child)
    service = IronicService(
        "provisioning",
        arguments(settings),
        pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(providers=[provider])),
    )
    return {
        "ironic": {"endpoint": service.endpoint, "ca": service.ca, "username": service.username},
        "ironicPassword": service.password,
    }
