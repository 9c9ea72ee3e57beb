"""Deletes resources in the order of their dependencies, and waits until they are gone."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.leftovers.inventory import KINDS, MACHINE, PROJECT, SPOT_REQUEST
from metal_ipi.provider.metal_client import MetalClient, Refused, Unprocessable

ORDER = (
    SPOT_REQUEST,  # would order deleted machines again
    MACHINE,  # occupies ports and addresses
    "BGP session",  # deleted with its machine
    "gateway",  # connects a VLAN and its addresses
    "reserved address",
    "VLAN",
    "SSH key",
    "API key",
    PROJECT,
)
"""All kinds. A kind that is missing here would be listed, but never deleted."""
_LINGERING = frozenset({MACHINE, "gateway"})
"""Kinds that exist for a while after their deletion was accepted."""
_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class Target:
    """A resource to delete."""

    kind: str
    id: str


Tell = Callable[[Target, str], None]
"""Called for each finished target: with an empty text if it is gone, otherwise with the reason."""


async def remove(client: MetalClient, targets: Iterable[Target], tell: Tell, *, patience: float = 300) -> bool:
    """Delete the targets, one kind after the other. What is not gone after `patience` seconds is reported, and the
    others are still tried. Returns whether all are gone."""
    by_kind: defaultdict[str, list[Target]] = defaultdict(list)
    for target in targets:
        by_kind[target.kind].append(target)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(target: Target) -> bool:
        async with slots:
            try:
                await _delete(client, target, patience)
            except RemoteError as error:
                tell(target, str(error))
                return False
        tell(target, "")
        return True

    return all([all(await asyncio.gather(*map(one, by_kind[kind]))) for kind in ORDER])


async def _delete(client: MetalClient, target: Target, patience: float) -> None:
    """Delete one target. Repeated while it is being provisioned, or is used by others. Raises RemoteError."""
    kind = next((kind for kind in KINDS if kind.name == target.kind), None)
    path = f"/{kind.listed if kind else 'projects'}/{target.id}"
    backoff = Backoff(timeout=patience)
    while True:
        try:
            await client.repeat("DELETE", path, absent_ok=True, params=dict(kind.deleting) if kind else None)
        except Unprocessable as error:
            why = error.words
        except Refused as error:
            # A 403 may mean that the token may not delete; only for machines it may mean that they are gone, see
            # `of_device`.
            if error.status != 403 or target.kind != MACHINE or await client.of_device(target.id):
                raise
            return
        else:
            if target.kind not in _LINGERING or await _is_gone(client, target, path):
                return
            why = "it was deleted, but still exists"
        if backoff.over:
            raise RemoteError(f"{client.where} does not delete it for {patience:g} s: {why}")
        await backoff.pause()


async def _is_gone(client: MetalClient, target: Target, path: str) -> bool:
    if target.kind == MACHINE:
        return not await client.of_device(target.id)
    return not await client.repeat("GET", path, absent_ok=True)


__all__ = ["Target", "Tell", "remove"]
