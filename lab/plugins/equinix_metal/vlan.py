"""Virtual networks of a project."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import EngineLog, PluginError
from lab.plugins.equinix_metal.bridged import DEFAULT_TIMEOUT_SECONDS, Bridged
from lab.plugins.equinix_metal.client import ApiError, Client, Gone
from lab.plugins.equinix_metal.network_documents import identity, vlan_state
from lab.plugins.equinix_metal.network_inputs import VLAN, vlan_rules
from lab.plugins.values import Json

AGAIN_SECONDS = 1.0
"""How long to wait before asking again to remove what is still in use."""


class Vlan(Bridged):
    """`equinix-metal:index/vlan:Vlan`."""

    computed = ("vxlan",)
    optional = ("vxlan", "facility")
    path = "/virtual-networks"
    include = "assigned_to"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(VLAN, client, log)

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `network_inputs.vlan_rules`."""
        return vlan_rules(inputs)

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """A metro that is given for a network of a facility that told none."""
        untold = bool(inputs.get("metro") and not state.get("metro") and state.get("facility"))
        return super().same(name, state, inputs) or (name == "metro" and untold)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Order it; the answer shows it as it is, but may only refer to its project."""
        path = f"/projects/{inputs['projectId']}/virtual-networks"
        body: dict[str, Json] = {"project_id": inputs["projectId"], "description": inputs.get("description") or ""}
        if inputs.get("facility"):
            body["facility"] = inputs["facility"]
        if inputs.get("metro"):
            body["metro"] = str(inputs["metro"]).lower()
        if inputs.get("vxlan"):
            body["vxlan"] = int(inputs["vxlan"])
        wanted = {name: body[name] for name in ("description", "metro", "facility", "vxlan") if name in body}

        def alike(found: dict[str, Json]) -> bool:
            state = vlan_state(found)
            return all(state[name] == value for name, value in wanted.items())

        marked = inputs.get("vxlan") or inputs.get("description")
        nameless = "" if marked else "a virtual network without vxlan and description"
        find = self._client.finder(path, "virtual_networks", alike, nameless=nameless)
        return {**vlan_state(await self._client.order(path, body, find)), "projectId": inputs["projectId"]}

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        return vlan_state(document)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Remove it; ports that still have it let go of it first, and a gateway that is on its way out is waited
        for."""
        path = f"{self.path}/{request.resource_id}"
        deadline = time.monotonic() + (request.timeout or DEFAULT_TIMEOUT_SECONDS)
        while (reason := await self._still_used(path)) is not None:
            if time.monotonic() >= deadline:
                raise PluginError(f"virtual network {request.resource_id} cannot be removed: {reason}")
            await self._log.status(request.urn, f"waiting until it is not used any more ({reason})")
            await self._unassign(request.resource_id)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _still_used(self, path: str) -> str | None:
        """Why the API does not remove it yet; None once it does."""
        try:
            await self._client.delete(path)
        except ApiError as error:
            if error.status != 422:
                raise
            return str(error)
        return None

    async def _unassign(self, identifier: str) -> None:
        """Whatever comes of it: the next attempt to remove the network tells whether it was of use."""
        include = "instances,instances.network_ports.virtual_networks"
        try:
            document = (await self._client.get(f"{self.path}/{identifier}", include=include)).document
        except Gone:
            return
        for device in document.get("instances") or []:
            for port in device.get("network_ports") or []:
                if identifier in [identity(network) for network in port.get("virtual_networks") or []]:
                    with contextlib.suppress(ApiError):
                        await self._client.act(f"/ports/{port['id']}/unassign", {"vnid": identifier})
