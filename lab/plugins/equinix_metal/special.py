"""What the other resource types do beside their tables: projects, virtual networks, ports, spot market requests."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from datetime import datetime

from pulumi.provider.experimental import provider as api

from lab.plugins.base import EngineLog, NotInTheLab, PluginError
from lab.plugins.equinix_metal.bridged import DEFAULT_TIMEOUT_SECONDS, Bridged, read_all
from lab.plugins.equinix_metal.client import ApiError, Client, Gone, made_since
from lab.plugins.equinix_metal.documents import LAYER_2, Document, identity, set_order
from lab.plugins.equinix_metal.table import Type
from lab.plugins.values import Json, plain_map

AGAIN_SECONDS = 1.0
"""How long to wait before asking again to remove what is still in use."""
FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 0.5, 5.0
TELLING_SECONDS = 60.0
"""How long a spot market request that may be ours is waited for to tell its devices."""


class Project(Bridged):
    """A project, and its BGP configuration, which the API keeps elsewhere."""

    async def make(self, inputs: Document, request: api.CreateRequest) -> dict[str, Json]:
        """The project first, then what can only be set on one that exists."""
        made = await super().make(inputs, request)
        try:
            await self._configure_bgp(made["id"], {}, inputs)
            state = await self.fetch(made["id"], inputs)
        except (PluginError, asyncio.CancelledError) as error:
            raise self.kept({"id": made["id"], "name": made["name"]}, str(error) or "cancelled") from None
        if state is None:
            raise PluginError(f"project {made['name']} ({made['id']}) disappeared as soon as it was made")
        return state

    async def _configure_bgp(self, identifier: str, olds: Document, inputs: Document) -> None:
        wanted: Document | None = inputs.get("bgpConfig")
        if wanted and not self._same("bgpConfig", olds, inputs):
            body = {"deployment_type": wanted["deploymentType"], "asn": int(wanted["asn"])}
            body |= {"md5": wanted["md5"]} if wanted.get("md5") else {}
            await self._client.change("POST", f"/projects/{identifier}/bgp-configs", body)

    async def fetch(self, identifier: str, known: Document) -> dict[str, Json] | None:
        """With its BGP configuration, if it has one and, as officially, if the API does not refuse to tell."""
        state = await super().fetch(identifier, known)
        if state is None:
            return None
        state.pop("bgpConfig", None)
        with contextlib.suppress(ApiError):
            document = (await self._client.get(f"/projects/{identifier}/bgp-config")).document
            if document.get("id"):
                state["bgpConfig"] = read_all(self.kind.own["bgpConfig"].fields, document)
        return state

    async def change(self, request: api.UpdateRequest, olds: Document, inputs: Document) -> None:
        """Its name and BGP configuration can be changed; that one cannot be taken away."""
        if olds.get("bgpConfig") and not inputs.get("bgpConfig"):
            raise PluginError(f"project {olds.get('name')}: bgpConfig cannot be removed from a project, add it again")
        await super().change(request, olds, inputs)
        await self._configure_bgp(request.resource_id, olds, inputs)


class Vlan(Bridged):
    """A virtual network."""

    async def delete(self, request: api.DeleteRequest) -> None:
        """Remove it; ports that still have it let go of it first, and a gateway that is on its way out is waited
        for."""
        deadline = time.monotonic() + (request.timeout or DEFAULT_TIMEOUT_SECONDS)
        while (reason := await self._still_used(f"{self.kind.path}/{request.resource_id}")) is not None:
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
        with contextlib.suppress(Gone):
            document = (await self._client.get(f"{self.kind.path}/{identifier}", include=include)).document
            for device in document.get("instances") or []:
                for port in device.get("network_ports") or []:
                    if identifier in [identity(network) for network in port.get("virtual_networks") or []]:
                        with contextlib.suppress(ApiError):
                            await self._client.change("POST", f"/ports/{port['id']}/unassign", {"vnid": identifier})


class Port(Bridged):
    """A device's bond and the virtual networks in it. It comes and goes with its device: a resource of this type only
    says how it is set. Other ports, layer 2 and unbonded ports are the official plug-in's."""

    async def make(self, inputs: Document, request: api.CreateRequest) -> dict[str, Json]:
        """Set it as it is wished. What was changed before a failure stays changed: the next update goes on."""
        document = await self._set(inputs["portId"], inputs.get("vlanIds") or [], request.timeout)
        return self.describe(document, self.with_timeouts(inputs, request.timeout))

    async def change(self, request: api.UpdateRequest, olds: Document, inputs: Document) -> None:
        """See `make`; networks that are not spoken of stay."""
        await self._set(request.resource_id, inputs.get("vlanIds") or olds.get("vlanIds") or [], request.timeout)

    async def fetch(self, identifier: str, known: Document) -> dict[str, Json] | None:
        """Also gone when it may not be seen any more: the device may be somebody else's by now."""
        try:
            return await super().fetch(identifier, known)
        except ApiError as error:
            if error.status == 403:
                return None
            raise

    async def delete(self, request: api.DeleteRequest) -> None:
        """With `resetOnDelete` without networks, as it was when it came; else left as it is."""
        if plain_map(request.properties).get("resetOnDelete"):
            with contextlib.suppress(Gone):
                await self._set(request.resource_id, [], request.timeout)

    async def _set(self, identifier: str, wanted: Sequence[str], timeout: float) -> dict[str, Json]:
        """First what goes, then what comes."""
        path, include = f"/ports/{identifier}", self.kind.include
        port = (await self._client.get(path, include=include)).document
        bonded = (port.get("data") or {}).get("bonded")
        if port.get("type") != "NetworkBondPort" or not bonded or port.get("network_type") in LAYER_2:
            raise NotInTheLab("equinix-metal", f"ports other than bonds that hold in layer 3, as {port.get('name')}")
        there = {identity(network) for network in port.get("virtual_networks") or []}
        seconds = timeout or DEFAULT_TIMEOUT_SECONDS
        for state, networks in (("unassigned", there - {*wanted}), ("assigned", {*wanted} - there)):
            if networks:
                await self._batch(f"{path}/vlan-assignments/batches", state, set_order(networks), seconds)
                port = (await self._client.get(path, include=include)).document
        return port

    async def _batch(self, path: str, state: str, networks: list[str], seconds: float) -> None:
        """Several networks `assigned` or `unassigned` at once; waits until it is done."""

        async def find(since: datetime) -> dict[str, Json] | None:
            async for entry in self._client.entries(path, "batches"):
                parts: list[dict[str, Json]] = entry.document.get("vlan_assignments") or []
                ours = [{str(it.get("id")), str(it.get("vlan"))} & {*networks} for it in parts if it["state"] == state]
                if len(parts) == len(networks) == len([each for each in ours if each]) and made_since(entry, since):
                    return entry.document
            return None

        body = {"vlan_assignments": [{"vlan": network, "state": state} for network in networks]}
        batch = await self._client.order(path, body, find)
        deadline, pause = time.monotonic() + seconds, FIRST_POLL_SECONDS
        while batch.get("state") != "completed":
            if batch.get("state") == "failed":
                reasons = "; ".join(str(reason) for reason in batch.get("error_messages") or ["no reason is given"])
                raise PluginError(f"{path}/{batch['id']} failed: {reasons}")
            if time.monotonic() >= deadline:
                raise PluginError(f"{path}/{batch['id']} is still {batch.get('state')} after {seconds:.0f} s")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_POLL_SECONDS)
            batch = (await self._client.get(f"{path}/{batch['id']}")).document


class SpotMarketRequest(Bridged):
    """Devices as long as the market's price is below a maximum. They are not waited for."""

    def __init__(self, kind: Type, client: Client, log: EngineLog) -> None:
        super().__init__(kind, client, log)
        self._ours: set[str] = set()

    async def make(self, inputs: Document, request: api.CreateRequest) -> dict[str, Json]:
        """What was ordered here is not taken for another's order whose outcome is not known."""
        state = await super().make(inputs, request)
        self._ours.add(state["id"])
        return state

    def describe(self, document: Document, known: Document) -> dict[str, Json]:
        """Terraform has one member more among the parameters, under a name that is misspelt."""
        state = super().describe(document, known)
        if "instanceParameters" in state:
            state["instanceParameters"] = {**state["instanceParameters"], "termintationTime": ""}
        return state

    async def find(self, path: str, inputs: Document, since: datetime) -> dict[str, Json] | None:
        """A request does not show its parameters, but its devices have their host names: they are waited for as long as
        somebody's request may be this one."""
        hostname, deadline = inputs["instanceParameters"]["hostname"], time.monotonic() + TELLING_SECONDS
        while True:
            silent: list[str] = []
            async for entry in self._client.entries(path, self.kind.collection, include=self.kind.include):
                found, there = entry.document, self.describe(entry.document, {})
                alike = all(self._alike(name, there, inputs) for name in self.kind.alike)
                if not alike or found["id"] in self._ours or not made_since(entry, since):
                    continue
                names = [device["hostname"] for device in found.get("devices") or [] if device.get("hostname")]
                if hostname in names:
                    return found
                silent += [] if names else [found["id"]]
            if not silent:
                return None
            if time.monotonic() >= deadline:
                raise PluginError(
                    f"nobody knows whether the spot market request for {hostname} was taken: {', '.join(silent)} may "
                    "be it, but has no device yet; look in the project before you try again"
                )
            await asyncio.sleep(LONGEST_POLL_SECONDS)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Withdraw it and end its devices."""
        await self._client.delete(f"{self.kind.path}/{request.resource_id}", {"force_termination": True})
