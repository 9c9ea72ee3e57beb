"""Configurations that refer to others: `replace` and `merge`, recursively."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from lab.machines.simulated.ignition import IgnitionError
from lab.machines.simulated.ignition.merge import merge
from lab.machines.simulated.ignition.resource import Fetcher
from lab.machines.simulated.ignition.schema import Config, parse

_DEEPEST = 20


async def render(config: Config, fetcher: Fetcher, log: Callable[[str], None], depth: int = 0) -> Config:
    """The whole configuration. Children see the authorities of their parents; they override what they repeat."""
    if depth > _DEEPEST:
        raise IgnitionError("configs refer to each other without an end")
    await fetcher.trust(_authorities(config))
    references: dict[str, Any] = config["ignition"].get("config") or {}
    replacement = references.get("replace")
    if replacement and replacement.get("source"):
        return await render(await _referenced(replacement, fetcher, log), fetcher, log, depth + 1)
    merged = config
    for reference in references.get("merge") or []:
        child = await _referenced(reference, fetcher, log)
        await fetcher.trust(_authorities(merge(merged, child)))
        merged = merge(merged, await render(child, fetcher, log, depth + 1))
    return merged


def _authorities(config: Config) -> list[dict[str, Any]]:
    security = config["ignition"].get("security") or {}
    return (security.get("tls") or {}).get("certificateAuthorities") or []


async def _referenced(resource: dict[str, Any], fetcher: Fetcher, log: Callable[[str], None]) -> Config:
    data = await fetcher.read(resource)
    source = resource["source"]
    shown = "data url" if source.startswith("data:") else source
    log(f"fetched referenced config at {shown} with SHA512: {hashlib.sha512(data).hexdigest()}")
    return parse(data)
