"""Deletes what is to go, in the order in which one thing needs another, and waits until it is gone."""

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
    SPOT_REQUEST,  # would order anew what is deleted
    MACHINE,  # holds ports and addresses
    "BGP session",  # goes with its machine, where that goes
    "gateway",  # stands between a VLAN and its addresses
    "reserved address",
    "VLAN",
    "SSH key",
    "API key",
    PROJECT,
)
"""Every kind; what is not in it would be listed, and never deleted."""
_LINGERING = frozenset({MACHINE, "gateway"})
"""Kinds that are there for a while after their deletion was taken."""
_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is to be deleted."""

    kind: str
    id: str


Tell = Callable[[Target, str], None]
"""Told of each that is over: the empty string when it is gone, else why it is not."""


async def remove(client: MetalClient, targets: Iterable[Target], tell: Tell, *, patience: float = 300) -> bool:
    """Delete, one kind after the other. What does not go in `patience` seconds is told, and the rest still tried."""
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
    """One that is still being provisioned, or that others still use, is asked for again."""
    kind = next((kind for kind in KINDS if kind.name == target.kind), None)
    path = f"/{kind.listed if kind else 'projects'}/{target.id}"
    backoff = Backoff(timeout=patience)
    while True:
        try:
            await client.repeat("DELETE", path, absent_ok=True, params=dict(kind.deleting) if kind else None)
        except Unprocessable as error:
            why = error.words
        except Refused as error:
            # A token that may not delete is no proof that something is gone; of machines, see `of_device`.
            if error.status != 403 or target.kind != MACHINE or await client.of_device(target.id):
                raise
            return
        else:
            if target.kind not in _LINGERING or await _is_gone(client, target, path):
                return
            why = "it was deleted, and is still there"
        if backoff.over:
            raise RemoteError(f"{client.where} does not delete it for {patience:g} s: {why}")
        await backoff.pause()


async def _is_gone(client: MetalClient, target: Target, path: str) -> bool:
    if target.kind == MACHINE:
        return not await client.of_device(target.id)
    return not await client.repeat("GET", path, absent_ok=True)


__all__ = ["Target", "Tell", "remove"]
