"""Which kind of stack a configuration is of: a cluster's, or a hub's.

What is of hubs alone is imported where it is a hub's: it takes half as long again as all that clusters need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from metal_ipi.stacks import settings

if TYPE_CHECKING:
    from metal_ipi.stacks.hub.sections import HubSettings


def is_hub(values: Mapping[str, str]) -> bool:
    """Whether a stack's configuration, as the engine hands it over, is a hub's."""
    return values.get("provisioning") not in (None, "", "{}")


def parse(values: dict[str, str], stack: str) -> settings.Settings | HubSettings:
    """Validate configuration values as the engine hands them over. Raises SettingsError."""
    if is_hub(values):
        from metal_ipi.stacks.hub.settings import HUB

        return HUB.parse(values, stack)
    return settings.parse(values, stack)
