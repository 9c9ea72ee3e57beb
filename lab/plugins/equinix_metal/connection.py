"""Connections to networks elsewhere, over Equinix Fabric or by cable, and virtual circuits in them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import EngineLog, PluginError
from lab.plugins.equinix_metal.bridged import DEFAULT_TIMEOUT_SECONDS, Bridged
from lab.plugins.equinix_metal.client import ApiError, Client, Gone
from lab.plugins.equinix_metal.network_documents import circuit_state, connection_state
from lab.plugins.equinix_metal.network_inputs import CONNECTION, VIRTUAL_CIRCUIT, connection_rules
from lab.plugins.values import Json, plain_map

FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 1.0, 5.0


class Connection(Bridged):
    """`equinix-metal:index/connection:Connection`."""

    computed = ("facility", "metro", "ports", "speed", "status", "token")
    optional = ("facility", "metro")
    path = "/connections"
    include = "organization,facility,metro,project"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(CONNECTION, client, log)

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `network_inputs.connection_rules`."""
        return connection_rules(inputs)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Ask for it; somebody else has to accept it before it carries anything."""
        names = ("name", "redundancy", "type", "mode", "description", "facility", "metro", "tags")
        body: dict[str, Json] = {name: inputs[name] for name in names if inputs.get(name)}
        if "metro" in body:
            body["metro"] = str(body["metro"]).lower()
        if inputs.get("projectId"):
            body["project"] = inputs["projectId"]
        path = f"/organizations/{inputs['organizationId']}/connections"
        find = self._client.finder(path, "interconnections", lambda found: found.get("name") == inputs["name"])
        document = await self._client.order(path, body, find, include=self.include)
        return self.describe(document, inputs)

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        return connection_state(document)

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """What is not part of the order."""
        body = _changes(olds, inputs, ("description", "mode", "redundancy"))
        if body:
            await self._client.put(f"{self.path}/{request.resource_id}", body)


class VirtualCircuit(Bridged):
    """`equinix-metal:index/virtualCircuit:VirtualCircuit`."""

    computed = ("nniVnid", "speed", "status", "vnid")
    optional = ("speed",)
    path = "/virtual-circuits"
    include = "project,port,virtual_network"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(VIRTUAL_CIRCUIT, client, log)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Order it, and wait until it carries its virtual network."""
        connection = (await self._client.get(f"/connections/{inputs['connectionId']}")).document
        if connection.get("status") == "pending":
            raise PluginError(f"connection {connection.get('name')} ({connection['id']}) was not accepted yet")
        body: dict[str, Json] = {"project_id": inputs["projectId"], "vnid": inputs["vlanId"]}
        body |= {name: inputs[name] for name in ("name", "description", "speed", "tags") if inputs.get(name)}
        if inputs.get("nniVlan"):
            body["nni_vlan"] = int(inputs["nniVlan"])
        path = f"/connections/{inputs['connectionId']}/ports/{inputs['portId']}/virtual-circuits"
        find = self._client.finder(path, "virtual_circuits", lambda found: found.get("name") == inputs["name"])
        document = await self._client.order(path, body, find)
        seconds = request.timeout or DEFAULT_TIMEOUT_SECONDS
        try:
            document = await self._wait(request.urn, document["id"], "active", seconds)
        except (PluginError, asyncio.CancelledError) as error:
            reason = str(error) or f"cancelled while waiting for virtual circuit {document['id']}"
            raise self.kept(self.describe(document, inputs), reason) from None
        return self.describe(document, inputs)

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """The API does not tell which connection it belongs to, and without a network not which it had."""
        state = circuit_state(document)
        told = {name: value for name, value in state.items() if name != "vlanId" or value}
        return {**{name: known[name] for name in ("connectionId", "vlanId") if known.get(name)}, **told}

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """Its name and what is said about it; one that was not active yet is waited for again."""
        body = _changes(olds, inputs, ("name", "description"))
        if inputs.get("speed") and inputs["speed"] != olds.get("speed"):
            body["speed"] = inputs["speed"]
        if body:
            await self._client.put(f"{self.path}/{request.resource_id}", body)
        if olds.get("status") != "active":
            await self._wait(request.urn, request.resource_id, "active", request.timeout or DEFAULT_TIMEOUT_SECONDS)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Take its virtual network away first, as the API wants it."""
        path = f"{self.path}/{request.resource_id}"
        try:
            if plain_map(request.properties).get("vlanId"):
                await self._client.put(path, {"vnid": ""})
                seconds = request.timeout or DEFAULT_TIMEOUT_SECONDS
                await self._wait(request.urn, request.resource_id, "waiting_on_customer_vlan", seconds)
        except ApiError as error:
            if not isinstance(error, Gone) and error.status != 403:
                raise
        await self._client.delete(path)

    async def _wait(self, urn: str, identifier: str, wanted: str, seconds: float) -> dict[str, Json]:
        deadline, pause = time.monotonic() + seconds, FIRST_POLL_SECONDS
        while True:
            document = (await self._client.get(f"{self.path}/{identifier}", include=self.include)).document
            status = str(document.get("status"))
            if status == wanted:
                return document
            if status.endswith("_failed") or time.monotonic() >= deadline:
                raise PluginError(f"virtual circuit {identifier} is {status}, not {wanted}")
            await self._log.status(urn, f"virtual circuit is {status}")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_POLL_SECONDS)


def _changes(olds: Mapping[str, Json], inputs: Mapping[str, Json], names: tuple[str, ...]) -> dict[str, Json]:
    """The request that turns one into the other."""
    body: dict[str, Json] = {
        name: inputs.get(name) or "" for name in names if (inputs.get(name) or "") != (olds.get(name) or "")
    }
    if (inputs.get("tags") or []) != (olds.get("tags") or []):
        body["tags"] = inputs.get("tags") or []
    return body
