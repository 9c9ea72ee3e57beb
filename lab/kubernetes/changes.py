"""Waiting until objects change, by watches: whoever looks after objects asks for nothing while nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import httpx

_LONGEST = 300
"""Seconds after which a server ends a watch, as it does for Kubernetes' own clients (client-go, minWatchTimeout)."""


async def versions(client: httpx.AsyncClient, paths: Iterable[str]) -> dict[str, str]:
    """The present version of each collection, for `wait`. Raises httpx.HTTPError."""
    found: dict[str, str] = {}
    for path in paths:
        answer = (await client.get(path, params={"limit": "1"})).raise_for_status()
        found[path] = answer.json()["metadata"]["resourceVersion"]
    return found


async def wait(client: httpx.AsyncClient, since: Mapping[str, str]) -> None:
    """Until something of a collection is not as it was in a version, or it is not known any more whether it is: after
    300 s, or without the server."""
    watches = [asyncio.create_task(_watch(client, path, version)) for path, version in since.items()]
    try:
        await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _watch(client: httpx.AsyncClient, path: str, version: str) -> None:
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(_LONGEST)}
    try:
        async with client.stream("GET", path, params=query, timeout=_LONGEST + 10.0) as response:
            async for _ in response.aiter_lines():
                return
    except httpx.HTTPError:
        return  # whoever waits looks again
