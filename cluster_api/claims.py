"""Assigns servers to machines, for all clusters of the hub: a claimed server has a Lease.

The API creates only one object of a name, so if two machines claim a server at once, one of them fails.
"""

from __future__ import annotations

import hashlib
import time

from metal_ipi.cluster_api.api import LEASE, Api, Object
from metal_ipi.cluster_api.resources import METAL_IPI_MACHINE

_HOLDER = "metal-ipi.cluster.x-k8s.io/machine"
SURE = 20.0
"""Seconds for which a claim that was seen counts: only the process that leads changes claims, and people."""


class Claims:
    """The Leases of servers, in the providers' own namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._seen: dict[tuple[str, str], float] = {}
        """Until when a claim counts, by its Lease and its machine, on the monotonic clock."""

    async def has(self, server: str, machine: str) -> bool:
        """Whether a machine, `namespace/name`, has claimed a server, for looks: a claim that was seen just now is not
        asked for again."""
        claim, now = (_name(server), machine), time.monotonic()
        if self._seen.get(claim, now) <= now:
            seen = self._seen  # another one where a claim is given back meanwhile: what was seen before counts no more
            if await self.holder(server) != machine:
                return False
            seen[claim] = now + SURE
        return True

    async def claim(self, server: str, machine: str) -> str:
        """Claim a server for a machine, `namespace/name`. Returns the owner: the machine's own name if the claim
        succeeded. `server` identifies the server."""
        name, annotations = _name(server), {_HOLDER: machine}
        found = await self._api.get(LEASE, self._namespace, name)
        if found is None:
            body = {"metadata": {"name": name, "annotations": annotations}, "spec": {"holderIdentity": name}}
            await self._api.create(LEASE, self._namespace, body)
            found = await self._api.get(LEASE, self._namespace, name)
        holder = "" if found is None else _holder(found)
        if found is None or holder == machine or not await self._is_abandoned(holder):
            return holder
        # If two processes take it over at once, one has changed it before the other.
        taken = {**found, "metadata": {**found["metadata"], "annotations": annotations}}
        await self._api.replace(LEASE, self._namespace, taken)
        return await self.holder(server) or ""

    async def _is_abandoned(self, holder: str) -> bool:
        """Whether the object that has a claim is no longer on this hub: `clusterctl move` moves objects, but not their
        claims."""
        namespace, _, name = holder.partition("/")
        return bool(name) and await self._api.get(METAL_IPI_MACHINE.resource, namespace, name) is None

    async def holder(self, server: str) -> str | None:
        """The machine that has claimed a server; None if there is none."""
        found = await self._api.get(LEASE, self._namespace, _name(server))
        return None if found is None else _holder(found)

    async def give_back(self, machine: str) -> None:
        """Release the claims of a machine, also on a server that is no longer listed. Claims of other machines stay."""
        self._seen = {each: until for each, until in self._seen.items() if each[1] != machine}
        for found in await self._api.list(LEASE, self._namespace):
            if _holder(found) == machine:
                await self._api.delete(LEASE, self._namespace, found["metadata"]["name"])


def _holder(lease: Object) -> str:
    return str((lease["metadata"].get("annotations") or {}).get(_HOLDER) or "somebody")


def _name(server: str) -> str:
    return f"server-{hashlib.sha256(server.strip().lower().encode()).hexdigest()[:40]}"
