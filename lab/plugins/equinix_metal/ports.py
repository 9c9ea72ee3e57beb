"""What can be done to the ports of devices, by whichever resource type. An action whose outcome is not known is looked
for at the port itself before it is asked for again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.documents import part
from lab.plugins.equinix_metal.network_documents import LAYER_2, PORT_INCLUDES, identity, reference
from lab.plugins.values import Json

FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 0.5, 5.0
LAYER_3_ADDRESSES = (
    {"address_family": 4, "public": True},
    {"address_family": 4, "public": False},
    {"address_family": 6, "public": True},
)
Document = Mapping[str, Json]


class Ports:
    """Every method takes a port as the API showed it, and does nothing where there is nothing to do."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, identifier: str) -> dict[str, Json]:
        """The port with its networks."""
        return (await self._client.get(f"/ports/{identifier}", include=PORT_INCLUDES)).document

    async def bond(self, port: Document) -> bool:
        """Bonded; whether something was done, like all that follow."""
        return not bonded(port) and await self._act(port, "bond", {"bulk_enable": False}, bonded)

    async def disbond(self, port: Document, *, bulk: bool = False) -> bool:
        """No longer bonded, with `bulk` all ports of the bond."""
        return bonded(port) and await self._act(port, "disbond", {"bulk_disable": bulk}, lambda it: not bonded(it))

    async def to_layer_2(self, port: Document) -> bool:
        """In layer 2: its addresses are taken back."""
        return not in_layer_2(port) and await self._act(port, "convert/layer-2", None, in_layer_2)

    async def to_layer_3(self, port: Document) -> bool:
        """In layer 3, with new addresses."""
        body = {"request_ips": list(LAYER_3_ADDRESSES)}
        return in_layer_2(port) and await self._act(port, "convert/layer-3", body, lambda it: not in_layer_2(it))

    async def set_native(self, port: Document, network: str) -> bool:
        """This network untagged."""
        return native(port) != network and await self._act(
            port, "native-vlan", {"vnid": network}, lambda it: native(it) == network
        )

    async def unset_native(self, port: Document) -> bool:
        """No network untagged."""
        if native(port):
            await self._client.delete(f"/ports/{port['id']}/native-vlan")
        return bool(native(port))

    async def batch(self, port: Document, state: str, wanted: Iterable[str], seconds: float) -> bool:
        """Several networks `assigned` or `unassigned` at once; waits until it is done."""
        assignments = [{"vlan": network, "state": state} for network in wanted]
        if not assignments:
            return False
        path = f"/ports/{port['id']}/vlan-assignments/batches"
        asked = {assignment["vlan"] for assignment in assignments}

        def alike(found: dict[str, Json]) -> bool:
            entries: list[dict[str, Json]] = found.get("vlan_assignments") or []
            return len(entries) == len(asked) and all(
                entry.get("state") == state and {str(entry.get("id")), str(entry.get("vlan"))} & asked
                for entry in entries
            )

        find = self._client.finder(path, "batches", alike)
        batch = await self._client.order(path, {"vlan_assignments": assignments}, find)
        await self._completed(path, batch, seconds)
        return True

    async def _completed(self, path: str, batch: dict[str, Json], seconds: float) -> None:
        deadline, pause = time.monotonic() + seconds, FIRST_POLL_SECONDS
        while batch.get("state") != "completed":
            if batch.get("state") == "failed":
                reasons = "; ".join(str(reason) for reason in batch.get("error_messages") or ["no reason is told"])
                raise PluginError(f"{path}/{batch['id']} failed: {reasons}")
            if time.monotonic() >= deadline:
                raise PluginError(f"{path}/{batch['id']} is still {batch.get('state')} after {seconds:.0f} s")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_POLL_SECONDS)
            batch = (await self._client.get(f"{path}/{batch['id']}")).document

    async def _act(self, port: Document, action: str, body: Json, done: Callable[[Document], bool]) -> bool:
        async def find(since: datetime) -> dict[str, Json] | None:
            now = await self.get(port["id"])
            return now if done(now) else None

        await self._client.order(f"/ports/{port['id']}/{action}", body, find)
        return True


def bonded(port: Document) -> bool:
    """Whether it is in a bond, or is one that is up."""
    return bool(part(port, "data", "bonded"))


def in_layer_2(port: Document) -> bool:
    """Whether its bond has no addresses of its own."""
    return port.get("network_type") in LAYER_2


def native(port: Document) -> str:
    """The id of the network that goes untagged."""
    return reference(port, "native_virtual_network")


def networks(port: Document) -> dict[str, int]:
    """The networks in it: id → VXLAN."""
    return {identity(network): int(network.get("vxlan") or 0) for network in port.get("virtual_networks") or []}
