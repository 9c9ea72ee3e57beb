"""Devices: ordered once, waited for, changed in place, reinstalled, released.

Unlike the official plug-in this one never forgets a device it ordered: a device that fails or does not become active in
time stays in the state, and the next update waits on or, if it has failed, replaces it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from datetime import datetime

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure, PropertyDiff, PropertyDiffKind

from lab.plugins.base import EngineLog, InitFailed, NotInTheLab, PluginError
from lab.plugins.equinix_metal.bridged import DEFAULT_TIMEOUT_SECONDS, Bridged, timeouts_meta
from lab.plugins.equinix_metal.client import ApiError, Client, Gone, created_since
from lab.plugins.equinix_metal.documents import change_body, device_state, normal_json, order_body
from lab.plugins.equinix_metal.inputs import DEVICE, device_rules
from lab.plugins.values import UNKNOWN, Json, plain_map, wrap_map

INCLUDES = "project,metro,facility,hardware_reservation"
FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 1.0, 2.0
TELL_EVERY_SECONDS = 10.0
ON_THE_WAY = ("queued", "provisioning", "post_provisioning", "reinstalling", "powering_on", "powering_off")
LEAVING = ("deprovisioning", "failed", "deleted")
EVENTS_TOLD = 3
REINSTALL_GRACE_SECONDS = 10.0
"""How long a device may still call itself active after it was asked to reinstall."""


class Device(Bridged):
    """`equinix-metal:index/device:Device`."""

    computed = (
        "accessPrivateIpv4",
        "accessPublicIpv4",
        "accessPublicIpv6",
        "billingCycle",
        "created",
        "deployedFacility",
        "deployedHardwareReservationId",
        "hostname",
        "locked",
        "networkType",
        "networks",
        "ports",
        "rootPassword",
        "sshKeyIds",
        "state",
        "updated",
    )
    optional = ("hostname", "billingCycle")
    sensitive = ("rootPassword", "userData", "customData")

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(DEVICE, client, log)

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `inputs.device_rules`."""
        if inputs.get("waitForReservationDeprovision") is True and inputs.get("hardwareReservationId"):
            raise NotInTheLab("equinix-metal", "the input waitForReservationDeprovision")
        return device_rules(inputs)

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """A metro in capitals, a list of facilities that has the one the device is in, JSON spelt differently."""
        old, new = state.get(name), inputs.get(name)
        if name == "metro":
            return not new or str(old).lower() == str(new).lower()
        if name == "facilities":
            deployed = state.get("deployedFacility")
            return not new or deployed in new or ("any" in new and bool(deployed))
        if name == "hardwareReservationId":
            return bool(new) and new == state.get("deployedHardwareReservationId")
        if name == "storage" and old and new and new != UNKNOWN:
            return normal_json(old) == normal_json(new)
        return False

    def replaces(self, name: str, inputs: Mapping[str, Json]) -> bool:
        """Other data means another device, unless it may be reinstalled."""
        if name in ("userData", "customData"):
            return not (inputs.get("reinstall") or {}).get("enabled")
        return super().replaces(name, inputs)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """A device that failed cannot be repaired, only replaced."""
        response = await super().diff(request)
        if plain_map(request.old_state).get("state") == "failed":
            response.changes = True
            response.diffs.append("state")
            response.replaces.append("state")
            response.detailed_diff["state"] = PropertyDiff(PropertyDiffKind.UPDATE_REPLACE, False)
        return response

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Order it and wait until it is active."""
        if request.preview:
            return api.CreateResponse("", self.preview(request.properties))
        inputs = plain_map(request.properties)
        seconds = request.timeout or DEFAULT_TIMEOUT_SECONDS
        inputs["__meta"] = timeouts_meta(seconds)
        document = await self._order(inputs)
        state = await self._active(request.urn, document, inputs, seconds)
        return api.CreateResponse(document["id"], self.concealed(wrap_map(state)))

    async def _order(self, inputs: Mapping[str, Json]) -> dict[str, Json]:
        hostname, tags, project = inputs.get("hostname"), inputs.get("tags") or [], inputs["projectId"]

        async def find(since: datetime) -> dict[str, Json] | None:
            if not hostname:
                raise PluginError(
                    f"the outcome of ordering a device in project {project} is not known, and without a hostname it "
                    "cannot be looked for: look in the project before you try again"
                )
            page: Json = 1
            while page:
                answer = await self._client.get(
                    f"/projects/{project}/devices", search=str(hostname), per_page="100", page=str(page)
                )
                devices: list[dict[str, Json]] = answer.document.get("devices") or []
                for device in devices:
                    alike = device.get("hostname") == hostname and sorted(device.get("tags") or []) == sorted(tags)
                    gone = device.get("state") in LEAVING
                    if alike and not gone and created_since(device, since, answer.server_time):
                        return device
                page = page + 1 if (answer.document.get("meta") or {}).get("next") else None
            return None

        return await self._client.order(f"/projects/{project}/devices", order_body(inputs), find)

    async def _active(
        self, urn: str, document: dict[str, Json], known: Mapping[str, Json], seconds: float, *, again: bool = False
    ) -> dict[str, Json]:
        """Wait until it is active, with `again` active anew. Whatever goes wrong, what is known of it is kept."""
        identifier: str = document["id"]
        latest = document
        try:
            started = time.monotonic()
            told, pause = 0.0, FIRST_POLL_SECONDS
            said = ""
            while True:
                latest = (await self._client.get(f"/devices/{identifier}", include=INCLUDES)).document
                state = str(latest.get("state"))
                waited = time.monotonic() - started
                again = again and state == "active" and waited < REINSTALL_GRACE_SECONDS
                if state == "active" and not again:
                    return device_state(latest, known)
                if state != "active" and state not in ON_THE_WAY:
                    raise PluginError(f"{self._name(latest)} is {state}, not active{await self._events(identifier)}")
                if waited >= seconds:
                    raise PluginError(
                        f"{self._name(latest)} is still {state} after {waited:.0f} s{await self._events(identifier)}"
                    )
                progress = f"{state} {float(latest.get('provisioning_percentage') or 0):.0f} %"
                if progress != said or waited - told >= TELL_EVERY_SECONDS:
                    said, told = progress, waited
                    await self._log.status(urn, f"{latest.get('hostname')}: {progress}, for {waited:.0f} s")
                await asyncio.sleep(min(pause, max(seconds - waited, 0.05)))
                pause = min(pause * 1.2, LONGEST_POLL_SECONDS)
        except Gone:
            raise PluginError(f"{self._name(latest)} disappeared while it was waited for") from None
        except PluginError as error:
            raise self._kept(latest, known, str(error)) from None
        except asyncio.CancelledError:
            raise self._kept(latest, known, f"cancelled while waiting for {self._name(latest)}") from None

    def _kept(self, document: Mapping[str, Json], known: Mapping[str, Json], reason: str) -> InitFailed:
        return InitFailed(document["id"], self.concealed(wrap_map(device_state(document, known))), reason)

    @staticmethod
    def _name(document: Mapping[str, Json]) -> str:
        return f"device {document.get('hostname')} ({document.get('id')})"

    async def _events(self, identifier: str) -> str:
        """What the API says happened last; an error that hides the events must not hide the failure."""
        try:
            answer = await self._client.get(f"/devices/{identifier}/events", per_page=str(EVENTS_TOLD))
        except PluginError as error:
            return f" (its events cannot be read: {error})"
        events: list[dict[str, Json]] = answer.document.get("events") or []
        bodies = [str(event.get("body") or event.get("type")) for event in events[:EVENTS_TOLD]]
        return f"; latest events: {'; '.join(bodies)}" if bodies else ""

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """See `Bridged`."""
        try:
            answer = await self._client.get(f"/devices/{identifier}", include=INCLUDES)
        except Gone:
            return None
        return device_state(answer.document, {"__meta": timeouts_meta(DEFAULT_TIMEOUT_SECONDS), **known})

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Change what can be changed, reinstall when its data changed, and wait until it is active (again)."""
        olds = plain_map(request.olds)
        news = {name: value for name, value in plain_map(request.news).items() if name not in request.ignore_changes}
        ignored = {name: olds[name] for name in request.ignore_changes if name in olds}
        inputs = {**news, **ignored}
        if request.preview:
            changed = {name: value for name, value in inputs.items() if name in DEVICE and name != "facilities"}
            return api.UpdateResponse(self.concealed(wrap_map({**olds, **changed})))
        path = f"/devices/{request.resource_id}"
        body = change_body(olds, inputs)
        if body:
            await self._client.put(path, body)
        reinstalled = any(olds.get(name) != inputs.get(name) for name in ("userData", "customData"))
        if reinstalled:
            reinstall: dict[str, Json] = inputs.get("reinstall") or {}
            options = {
                "preserve_data": reinstall.get("preserveData"),
                "deprovision_fast": reinstall.get("deprovisionFast"),
            }
            asked = {name: True for name, value in options.items() if value}
            await self._client.act(f"{path}/actions", {"type": "reinstall", **asked})
        known = {**inputs, "__meta": olds.get("__meta") or timeouts_meta(DEFAULT_TIMEOUT_SECONDS)}
        document = (await self._client.get(path, include=INCLUDES)).document
        seconds = request.timeout or DEFAULT_TIMEOUT_SECONDS
        state = await self._active(request.urn, document, known, seconds, again=reinstalled)
        return api.UpdateResponse(self.concealed(wrap_map(state)))

    async def delete(self, request: api.DeleteRequest) -> None:
        """Release it and wait until the API no longer knows it; a device that is being installed is waited for."""
        known = plain_map(request.properties)
        path = f"/devices/{request.resource_id}"
        force = bool(known.get("forceDetachVolumes"))
        deadline = time.monotonic() + (request.timeout or DEFAULT_TIMEOUT_SECONDS)
        name = f"device {known.get('hostname')} ({request.resource_id})"
        while True:
            try:
                await self._client.delete(path, {"force_delete": force})
                await self._client.get(path)
                reason = "the API still knows it"
            except Gone:
                return
            except ApiError as error:
                if error.status == 403:
                    return
                if error.status != 422:
                    raise
                reason = str(error)
            if time.monotonic() >= deadline:
                raise PluginError(f"{name} cannot be released: {reason}")
            await self._log.status(request.urn, f"{known.get('hostname')}: waiting until it is released ({reason})")
            await asyncio.sleep(FIRST_POLL_SECONDS)
