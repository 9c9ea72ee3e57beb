"""Requests for devices at the spot market: so many, as long as the market's price is below a maximum."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from datetime import datetime

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import EngineLog, PluginError
from lab.plugins.equinix_metal.bridged import DEFAULT_TIMEOUT_SECONDS, Bridged, timeouts_meta
from lab.plugins.equinix_metal.client import Client, Gone, made_since
from lab.plugins.equinix_metal.inputs import SPOT_MARKET_REQUEST, spot_rules
from lab.plugins.equinix_metal.spot_documents import (
    instance_body,
    spot_devices,
    spot_hostnames,
    spot_request_state,
    whole_cents,
)
from lab.plugins.values import Json, plain_map

FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 1.0, 5.0
TELLING_SECONDS = 60.0
SAME_PRICE_RATIO = 0.02
"""As officially: a maximum price is another one only from fifty times the old one on."""
KEPT = ("__meta", "instanceParameters", "waitForDevices")
"""What the API does not tell as it was given."""


class SpotMarketRequest(Bridged):
    """`equinix-metal:index/spotMarketRequest:SpotMarketRequest`."""

    computed = ("facilities",)
    optional = ("facilities",)
    path = "/spot-market-requests"
    include = "project,devices,facilities,metro"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(SPOT_MARKET_REQUEST, client, log)
        self._ours: set[str] = set()

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `inputs.spot_rules`."""
        return spot_rules(inputs)

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """A price that officially is no other one."""
        old, new = state.get(name), inputs.get(name)
        if name == "maxBidPrice":
            return isinstance(old, float) and isinstance(new, float) and new > 0 and old / new > SAME_PRICE_RATIO
        return super().same(name, state, inputs)

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Send it, and wait for its devices if asked to."""
        path = f"/projects/{inputs['projectId']}/spot-market-requests"
        seconds = request.timeout or DEFAULT_TIMEOUT_SECONDS
        known = {**inputs, "__meta": timeouts_meta(seconds, changes=False)}
        body: dict[str, Json] = {
            "devices_min": int(inputs["devicesMin"]),
            "devices_max": int(inputs["devicesMax"]),
            "max_bid_price": whole_cents(inputs["maxBidPrice"]),
            "instance_parameters": instance_body(inputs["instanceParameters"]),
        }
        if inputs.get("facilities"):
            body["facilities"] = inputs["facilities"]
        if inputs.get("metro"):
            body["metro"] = str(inputs["metro"]).lower()
        hostname: str = inputs["instanceParameters"]["hostname"]

        async def find(since: datetime) -> dict[str, Json] | None:
            return await self._find(path, body, hostname, since)

        document = await self._client.order(path, body, find, include=self.include)
        self._ours.add(document["id"])
        if not inputs.get("waitForDevices"):
            return self.describe(document, known)
        try:
            return self.describe(await self._devices_active(request.urn, document, inputs, seconds), known)
        except (PluginError, asyncio.CancelledError) as error:
            reason = str(error) or f"cancelled while waiting for the devices of spot market request {document['id']}"
            raise self.kept(self.describe(document, known), reason) from None

    async def _find(
        self, path: str, body: Mapping[str, Json], hostname: str, since: datetime
    ) -> dict[str, Json] | None:
        """The request itself may not show its parameters, but its devices have their host names: they are waited for
        as long as somebody's request may be this one."""
        deadline = time.monotonic() + TELLING_SECONDS
        while True:
            silent: list[str] = []
            async for answer in self._client.entries(path, "spot_market_requests", include=self.include):
                found = answer.document
                alike = all(found.get(name) == body[name] for name in ("devices_min", "devices_max", "max_bid_price"))
                if alike and found["id"] not in self._ours and made_since(answer, since):
                    names = spot_hostnames(found)
                    if hostname in names:
                        return found
                    if not names:
                        silent.append(found["id"])
            if not silent:
                return None
            if time.monotonic() >= deadline:
                raise PluginError(
                    f"nobody knows whether the spot market request for {hostname} was taken: {', '.join(silent)} may "
                    "be it, but has no device yet; look in the project before you try again"
                )
            await asyncio.sleep(LONGEST_POLL_SECONDS)

    async def _devices_active(
        self, urn: str, document: dict[str, Json], inputs: Mapping[str, Json], seconds: float
    ) -> dict[str, Json]:
        deadline, pause = time.monotonic() + seconds, FIRST_POLL_SECONDS
        while True:
            states = [str(device.get("state")) for device in spot_devices(document)]
            if "failed" in states:
                raise PluginError(
                    f"a device of spot market request {document['id']} failed, and it brings no other: replace it"
                )
            if len(states) >= int(inputs["devicesMin"]) and all(state == "active" for state in states):
                return document
            told = f"{states.count('active')} of {int(inputs['devicesMin'])} devices active"
            if time.monotonic() >= deadline:
                raise PluginError(f"spot market request {document['id']}: {told} after {seconds:.0f} s")
            await self._log.status(urn, told)
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, LONGEST_POLL_SECONDS)
            document = (await self._client.get(f"{self.path}/{document['id']}", include=self.include)).document

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """Nothing can be changed; devices that were not active yet are waited for again."""
        if inputs.get("waitForDevices"):
            document = (await self._client.get(f"{self.path}/{request.resource_id}", include=self.include)).document
            seconds = request.timeout or DEFAULT_TIMEOUT_SECONDS
            await self._devices_active(request.urn, document, inputs, seconds)

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        kept = {name: known[name] for name in KEPT if known.get(name) is not None}
        if "instanceParameters" in kept:
            kept["instanceParameters"] = {**kept["instanceParameters"], "termintationTime": ""}
        meta = {"__meta": timeouts_meta(DEFAULT_TIMEOUT_SECONDS, changes=False)}
        return {**meta, **kept, **spot_request_state(document)}

    async def delete(self, request: api.DeleteRequest) -> None:
        """Withdraw it and end its devices, with `waitForDevices` until they are gone."""
        path = f"{self.path}/{request.resource_id}"
        deadline = time.monotonic() + (request.timeout or DEFAULT_TIMEOUT_SECONDS)
        devices: list[str] = []
        if plain_map(request.properties).get("waitForDevices"):
            with contextlib.suppress(Gone):
                document = (await self._client.get(path, include=self.include)).document
                devices = [device["id"] for device in spot_devices(document)]
        await self._client.delete(path, {"force_termination": True})
        for device in devices:
            await self._gone(request.urn, device, deadline)

    async def _gone(self, urn: str, device: str, deadline: float) -> None:
        with contextlib.suppress(Gone):
            while True:
                state = (await self._client.get(f"/devices/{device}")).document.get("state")
                if time.monotonic() >= deadline:
                    raise PluginError(f"device {device} of a withdrawn spot market request is still {state}")
                await self._log.status(urn, f"device {device} is {state}")
                await asyncio.sleep(FIRST_POLL_SECONDS)
