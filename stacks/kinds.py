"""The kind of a stack: a cluster's, or a hub's.

Modules for hubs are imported only for a hub: they add half to the import time of a cluster's stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from metal_ipi.stacks import settings

if TYPE_CHECKING:
    from metal_ipi.stacks.hub.sections import HubSettings


def is_hub(values: Mapping[str, str]) -> bool:
    """Whether a stack's configuration, as the engine passes it, belongs to a hub."""
    return values.get("provisioning") not in (None, "", "{}")


def parse(values: dict[str, str], stack: str) -> settings.Settings | HubSettings:
    """Validate configuration values as the engine passes them. Raises SettingsError."""
    if is_hub(values):
        from metal_ipi.stacks.hub.settings import HUB

        return HUB.parse(values, stack)
    return settings.parse(values, stack)
