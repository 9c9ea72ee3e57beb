"""Which kind of stack a configuration is of: a cluster's, or a hub's."""

from __future__ import annotations

from metal_ipi.stacks.hub.sections import HubSettings
from metal_ipi.stacks.hub.settings import HUB, is_hub
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.settings import CLUSTER


def parse(values: dict[str, str], stack: str) -> Settings | HubSettings:
    """Validate configuration values as the engine hands them over. Raises SettingsError."""
    return HUB.parse(values, stack) if is_hub(values) else CLUSTER.parse(values, stack)
