"""Devices: ordered once, waited for, changed in place, reinstalled, released.

Unlike the official plug-in this one never forgets a device it ordered: a device that fails or does not become active in
time stays in the state, and the next update waits on or, if it has failed, replaces it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import CheckFailure, PropertyDiff, PropertyDiffKind

from lab.plugins.base import EngineLog, PluginError
from lab.plugins.equinix_metal.bridged import DEFAULT_TIMEOUT_SECONDS, Bridged, timeouts_meta
from lab.plugins.equinix_metal.client import ApiError, Client, Gone
from lab.plugins.equinix_metal.documents import change_body, device_state, normal_json, order_body
from lab.plugins.equinix_metal.inputs import DEVICE, device_rules
from lab.plugins.equinix_metal.watch import Watch
from lab.plugins.values import UNKNOWN, Json, plain_map

AGAIN_SECONDS = 1.0
"""How long to wait before asking again for what was refused for the time being."""
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
    spelt = ("metro", "storage")
    sensitive = ("rootPassword", "userData", "customData")
    path = "/devices"
    include = "project,metro,facility,hardware_reservation"

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(DEVICE, client, log)
        self._watch = Watch(client, self.include)

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """See `inputs.device_rules`."""
        return device_rules(inputs)

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """A metro in capitals, a list of facilities that has the one the device is in, JSON spelt differently."""
        old, new = state.get(name), inputs.get(name)
        if name == "metro":
            return not new or super().same(name, state, inputs)
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
        if not plain_map(request.old_state).get("terminationTime"):
            # Terraform has no such value then, though it shows an empty one.
            request.old_state = {name: it for name, it in request.old_state.items() if name != "terminationTime"}
        response = await super().diff(request)
        if plain_map(request.old_state).get("state") == "failed":
            response.changes = True
            response.diffs.append("state")
            response.replaces.append("state")
            response.detailed_diff["state"] = PropertyDiff(PropertyDiffKind.UPDATE_REPLACE, False)
        return response

    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Order it and wait until it is active."""
        seconds = request.timeout or DEFAULT_TIMEOUT_SECONDS
        hostname, tags = inputs.get("hostname"), sorted(inputs.get("tags") or [])
        path = f"/projects/{inputs['projectId']}/devices"

        def alike(found: dict[str, Json]) -> bool:
            same = found.get("hostname") == hostname and sorted(found.get("tags") or []) == tags
            return same and found.get("state") not in LEAVING

        nameless = "" if hostname else "a device without a hostname"
        find = self._client.finder(path, "devices", alike, nameless=nameless, search=str(hostname))
        document = await self._client.order(path, order_body(inputs), find)
        return await self._active(request.urn, document, {**inputs, "__meta": timeouts_meta(seconds)}, seconds)

    async def _active(
        self, urn: str, document: dict[str, Json], known: Mapping[str, Json], seconds: float, *, again: bool = False
    ) -> dict[str, Json]:
        """Wait until it is active, with `again` active anew. Whatever goes wrong, what is known of it is kept."""
        identifier: str = document["id"]
        latest = document
        try:
            started = time.monotonic()
            told, said = 0.0, ""
            while True:
                latest = await self._watch.look(known["projectId"], identifier)
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
        except Gone:
            raise PluginError(f"{self._name(latest)} disappeared while it was waited for") from None
        except PluginError as error:
            raise self.kept(device_state(latest, known), str(error)) from None
        except asyncio.CancelledError:
            reason = f"cancelled while waiting for {self._name(latest)}"
            raise self.kept(device_state(latest, known), reason) from None

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

    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """See `Bridged`."""
        return device_state(document, {"__meta": timeouts_meta(DEFAULT_TIMEOUT_SECONDS), **known})

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """Change what can be changed, and reinstall when its data changed; one that is not active (any more) is waited
        for."""
        path = f"{self.path}/{request.resource_id}"
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
        if not reinstalled and olds.get("state") == "active":
            return
        document = {"id": request.resource_id, "hostname": inputs.get("hostname") or olds.get("hostname")}
        known = {**inputs, "__meta": olds.get("__meta") or timeouts_meta(DEFAULT_TIMEOUT_SECONDS)}
        seconds = request.timeout or DEFAULT_TIMEOUT_SECONDS
        await self._active(request.urn, document, known, seconds, again=reinstalled)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Release it and wait until the API no longer knows it, and with `waitForReservationDeprovision` until its
        hardware can be ordered again; a device that is being installed is waited for."""
        known = plain_map(request.properties)
        deadline = time.monotonic() + (request.timeout or DEFAULT_TIMEOUT_SECONDS)
        await self._release(request, known, deadline)
        reservation = known.get("deployedHardwareReservationId")
        if reservation and known.get("waitForReservationDeprovision"):
            await self._provisionable(request.urn, reservation, deadline)

    async def _release(self, request: api.DeleteRequest, known: Mapping[str, Json], deadline: float) -> None:
        name, released = f"device {known.get('hostname')} ({request.resource_id})", False
        while True:
            reason = "the API still knows it"
            try:
                if not released:
                    force = {"force_delete": bool(known.get("forceDetachVolumes"))}
                    released = await self._client.delete(f"{self.path}/{request.resource_id}", force)
                    if not released:
                        return
                await self._watch.look(known["projectId"], request.resource_id)
            except Gone:
                return
            except ApiError as error:
                if error.status == 403:
                    return
                if error.status != 422:
                    raise
                reason = str(error)
                await asyncio.sleep(AGAIN_SECONDS)
            if time.monotonic() >= deadline:
                raise PluginError(f"{name} cannot be released: {reason}")
            await self._log.status(request.urn, f"{known.get('hostname')}: waiting until it is released ({reason})")

    async def _provisionable(self, urn: str, reservation: str, deadline: float) -> None:
        while not (await self._client.get(f"/hardware-reservations/{reservation}")).document.get("provisionable"):
            if time.monotonic() >= deadline:
                raise PluginError(f"hardware reservation {reservation} cannot be ordered from again yet: look at it")
            await self._log.status(urn, f"waiting until hardware reservation {reservation} can be ordered from again")
            await asyncio.sleep(AGAIN_SECONDS)
