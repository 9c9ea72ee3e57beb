"""Devices: ordered once, waited for, changed in place, released.

Unlike the official plug-in this one never forgets a device it ordered: a device that fails or does not become active in
time stays in the state, and the next update waits on or, if it has failed, replaces it.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import PropertyDiff, PropertyDiffKind

from lab.plugins.base import EngineLog, PluginError
from lab.plugins.equinix_metal.bridged import DEFAULT_TIMEOUT_SECONDS, Bridged
from lab.plugins.equinix_metal.client import ApiError, Client, Gone
from lab.plugins.equinix_metal.documents import Document
from lab.plugins.equinix_metal.table import DEVICE
from lab.plugins.values import Json, plain_map

AGAIN_SECONDS = 1.0
"""How long to wait before asking again for what was refused for the time being."""
FEW_EVERY_SECONDS, MANY_EVERY_SECONDS = 0.5, 2.0
FEW = 6
"""So many are looked at one by one: the list of a project also has the devices that nobody waits for."""
_TELL_EVERY_SECONDS = 10.0
_ON_THE_WAY = ("queued", "provisioning", "post_provisioning", "reinstalling", "powering_on", "powering_off")
_EVENTS_TOLD = 3
_Future = asyncio.Future[dict[str, Json]]


class Device(Bridged):
    """`equinix-metal:index/device:Device`."""

    def __init__(self, client: Client, log: EngineLog) -> None:
        super().__init__(DEVICE, client, log)
        self._watch = Watch(client, DEVICE.include)

    def describe(self, document: Document, known: Document) -> dict[str, Json]:
        """Terraform shows an empty end of a device that has none."""
        return {"terminationTime": "", **super().describe(document, known)}

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

    async def make(self, inputs: Document, request: api.CreateRequest) -> dict[str, Json]:
        """Order it and wait until it is active."""
        state = await super().make(inputs, request)
        known = self.with_timeouts(inputs, request.timeout)
        return await self._active(request.urn, state, known, request.timeout or DEFAULT_TIMEOUT_SECONDS)

    async def _active(self, urn: str, state: Document, known: Document, seconds: float) -> dict[str, Json]:
        """Wait until it is active. Whatever goes wrong, what is known of it is kept."""
        latest, started, told, said = dict(state), time.monotonic(), 0.0, ""
        name = f"device {state.get('hostname')} ({state['id']})"
        try:
            while latest.get("state") != "active":
                document = await self._watch.look(known["projectId"], state["id"])
                latest, waited = self.describe(document, known), time.monotonic() - started
                if latest["state"] not in (*_ON_THE_WAY, "active"):
                    raise PluginError(f"{name} is {latest['state']}, not active{await self._events(state['id'])}")
                if latest["state"] != "active" and waited >= seconds:
                    late = f"{name} is still {latest['state']} after {waited:.0f} s"
                    raise PluginError(f"{late}{await self._events(state['id'])}")
                progress = f"{latest['state']} {float(document.get('provisioning_percentage') or 0):.0f} %"
                if latest["state"] != "active" and (progress != said or waited - told >= _TELL_EVERY_SECONDS):
                    said, told = progress, waited
                    await self._log.status(urn, f"{latest['hostname']}: {progress}, for {waited:.0f} s")
        except Gone:
            raise PluginError(f"{name} disappeared while it was waited for") from None
        except (PluginError, asyncio.CancelledError) as error:
            raise self.kept(latest, str(error) or f"cancelled while waiting for {name}") from None
        return latest

    async def _events(self, identifier: str) -> str:
        """What the API says happened last; an error that hides the events must not hide the failure."""
        try:
            answer = await self._client.get(f"/devices/{identifier}/events", per_page=str(_EVENTS_TOLD))
        except PluginError as error:
            return f" (its events cannot be read: {error})"
        events: list[dict[str, Json]] = answer.document.get("events") or []
        bodies = [str(event.get("body") or event.get("type")) for event in events[:_EVENTS_TOLD]]
        return f"; latest events: {'; '.join(bodies)}" if bodies else ""

    async def change(self, request: api.UpdateRequest, olds: Document, inputs: Document) -> None:
        """Change what can be changed; one that is not active (any more) is waited for."""
        await super().change(request, olds, inputs)
        if olds.get("state") != "active":
            known = self.with_timeouts({**inputs, "__meta": olds.get("__meta")})
            state = {**olds, "id": request.resource_id}
            await self._active(request.urn, state, known, request.timeout or DEFAULT_TIMEOUT_SECONDS)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Release it and wait until the API no longer knows it, and with `waitForReservationDeprovision` until its
        hardware can be ordered again; a device that is being installed is waited for."""
        known = plain_map(request.properties)
        deadline = time.monotonic() + (request.timeout or DEFAULT_TIMEOUT_SECONDS)
        await self._release(request, known, deadline)
        reservation = known.get("deployedHardwareReservationId")
        if reservation and known.get("waitForReservationDeprovision"):
            await self._provisionable(request.urn, reservation, deadline)

    async def _release(self, request: api.DeleteRequest, known: Document, deadline: float) -> None:
        name, released = f"device {known.get('hostname')} ({request.resource_id})", False
        while True:
            reason = "the API still knows it"
            try:
                if not released:
                    path, force = f"{self.kind.path}/{request.resource_id}", {"force_delete": False}
                    released = await self._client.delete(path, force)
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


class Watch:
    """Looks at devices for all who wait for one: at many of a project with one request. Answers of one look go to all
    who asked before it."""

    def __init__(self, client: Client, include: str) -> None:
        self._client = client
        self._include = include
        self._waiting: defaultdict[str, dict[str, _Future]] = defaultdict(dict)
        self._looking: dict[str, asyncio.Task[None]] = {}

    async def look(self, project: str, identifier: str) -> dict[str, Json]:
        """The device as it is at the next look, in two seconds at most; Gone if it is not there any more."""
        waiting = self._waiting[project]
        if identifier not in waiting:
            waiting[identifier] = asyncio.get_running_loop().create_future()
        if project not in self._looking:
            self._looking[project] = asyncio.create_task(self._look_while_somebody_waits(project))
        return await asyncio.shield(waiting[identifier])

    async def _look_while_somebody_waits(self, project: str) -> None:
        try:
            while waiting := self._waiting[project]:
                await asyncio.sleep(FEW_EVERY_SECONDS if len(waiting) <= FEW else MANY_EVERY_SECONDS)
                self._waiting[project] = {}
                await self._look(project, waiting)
        finally:
            del self._looking[project]

    async def _look(self, project: str, waiting: dict[str, _Future]) -> None:
        listed: dict[str, dict[str, Json]] = {}
        if len(waiting) > FEW:
            entries = self._client.entries(f"/projects/{project}/devices", "devices", include=self._include)
            try:
                listed = {answer.document["id"]: answer.document async for answer in entries}
            except Exception as error:
                for future in waiting.values():
                    _fail(future, error)
                return
        await asyncio.gather(*(self._tell(name, future, listed.get(name)) for name, future in waiting.items()))

    async def _tell(self, identifier: str, future: _Future, document: dict[str, Json] | None) -> None:
        """What is not in the list is asked for by itself: only so the API says that it is gone."""
        try:
            path = f"/devices/{identifier}"
            future.set_result(document or (await self._client.get(path, include=self._include)).document)
        except Exception as error:
            _fail(future, error)


def _fail(future: _Future, error: Exception) -> None:
    future.set_exception(error)
    future.exception()  # who asked may have been cancelled meanwhile
