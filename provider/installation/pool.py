"""InstallationPool: what the installations of a pool have in common. It is in the state only.

An `Installation` that names its pool (`common`) leaves that out. The plug-in lives as long as one update, and learns
what pools have from the program, which declares them before their installations; so it knows that whenever it makes or
changes one. A refresh and a destroy need none of it. Where a worker is given up together with its pool, the cluster's
credentials are those of its other pools.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from metal_ipi.provider.alike import rebuilt
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes
from metal_ipi.provider.resources.installation_pool import InstallationPoolArgs
from metal_ipi.provider.values import has_unknown

_PLAIN = ("members", "credentials", "chain", "preRebootCommands", "pxeCommands")
_LIVE = ("kernel", "initramfs")
_TEXTS = ("script", "userData")
_NAMED = ("cluster", "name")
_REST = (*_PLAIN, *_LIVE, *_TEXTS)


class Pools:
    """The pools that an update has told of."""

    def __init__(self) -> None:
        self._known: dict[str, Values] = {}

    def learn(self, pool: Values) -> None:
        """A pool, by its inputs. What a preview does not know yet is told again."""
        if not has_unknown([pool.get(name) for name in _NAMED]):
            self._known[identity(pool)] = pool

    def whole(self, values: Values) -> Values:
        """The inputs of an installation, with those of its pool. Raises InvalidInputs where that is not known."""
        if values.get("common") is None:
            return values
        pool = self._known.get(values["common"]) if isinstance(values["common"], str) else None
        if pool is None:
            raise InvalidInputs(
                f"what installation {values.get('hostname')} has in common with others of {values.get('pool')} is not "
                "known in this update: include its InstallationPool (remove --target, or add its URN)"
            )
        return whole(values, pool)

    def leaving(self, values: Values) -> Values:
        """The same of an installation that is given up, whose pool may have gone, too: what any pool of the cluster
        knows does."""
        if values.get("common") is None or values["common"] in self._known:
            return self.whole(values)
        beside = next((pool for pool in self._known.values() if pool["cluster"] == values.get("cluster")), None)
        if beside is None:
            return self.whole(values)  # says what is missing
        return {**values, "credentials": beside["credentials"]}


def identity(pool: Values) -> str:
    """The id of a pool."""
    return hashlib.sha256(f"{pool['cluster']} {pool['name']}".encode()).hexdigest()[:16]


def whole(values: Values, pool: Values) -> Values:
    """The inputs of an installation with those of its pool."""
    own = {name: value for name, value in values.items() if name not in ("common", "derived")}
    shared = {name: pool[name] for name in (*_PLAIN, *_TEXTS) if pool.get(name) is not None}
    derived = values.get("derived") or {}
    for name in _TEXTS:
        text = derived.get(name) if isinstance(derived, Mapping) else derived
        if text is not None and name in shared:
            known = isinstance(text, str) and isinstance(shared[name], str)
            shared[name] = rebuilt(shared[name], text) if known else text
    live: dict[str, Any] = {name: pool[name] for name in _LIVE if pool.get(name) is not None}
    if isinstance(own.get("live"), Mapping):
        own["live"] = {**live, **own["live"]}
    return {**shared, **own}


class InstallationPool(ResourceType):
    """What the installations of a pool have in common."""

    token = "metal-ipi:index:InstallationPool"  # noqa: S105 - a type token
    inputs = InstallationPoolArgs
    hidden_inputs = frozenset(_REST)
    found_by_inputs = True

    def __init__(self, pools: Pools | None = None) -> None:
        self._pools = pools or Pools()

    def check(self, inputs: Values) -> Any:
        problems = super().check(inputs)
        if not problems:
            self._pools.learn(inputs)
        return problems

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        return simple_changes(old, new, (*_NAMED, *_REST), frozenset(_NAMED))

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        return {}

    async def create(self, context: Context, inputs: Values) -> Made:
        return Made(id=identity(inputs), outputs={})

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        return {}
