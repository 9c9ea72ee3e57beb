"""What the program of one stack of a facility sees of the settings: nothing else of them can change what it
declares."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from metal_ipi.stacks.day_two import operators
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.pools.splitting import cluster_of, of_pool, split


def seen(settings: Settings, stack: str, there: AbstractSet[str]) -> list[Any]:
    """What `stacks.program.main` declares a stack of, whose own name is `stack`. Other arguments and errors as for
    `split`."""
    if settings.pool is not None:
        return [of_pool(settings, cluster_of(stack, settings.pool), there), Nodes.of(settings).control_plane]
    found = split(settings, stack, there)
    return [found.cluster, operators(settings, facility(settings)), bool(found.pools)]
