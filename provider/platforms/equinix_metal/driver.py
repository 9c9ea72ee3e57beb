"""Equinix Metal's machines, through its HTTP API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.configuration import MetalSettings
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.metal_client import MetalClient, Passing, Refused, Unprocessable
from metal_ipi.provider.orders import NEXT_AVAILABLE
from metal_ipi.provider.platforms.contract import Event, Machine, MachineDriver
from metal_ipi.provider.platforms.equinix_metal.documents import event_of, id_of, machine_of, order
from metal_ipi.provider.resources.ephemeral_machine import EphemeralMachineArgs
from metal_ipi.provider.tags import identifying

if TYPE_CHECKING:
    import httpx

_CLEARING = 1200.0
"""Seconds until a reserved server can be ordered again; the official provider's limit is the same."""
_INSTALLING = frozenset({"queued", "provisioning", "reinstalling"})


class EquinixMetal(MachineDriver[EphemeralMachineArgs]):
    """See `MachineDriver`."""

    def __init__(
        self, settings: MetalSettings, *, timeout: float = 120, transport: httpx.AsyncBaseTransport | None = None
    ):
        """`timeout` is how long a call may be repeated, in seconds."""
        self._client = MetalClient(settings, timeout=timeout, transport=transport)
        self._timeout = timeout

    async def __aexit__(self, *error: object) -> None:
        await self._client.__aexit__(*error)

    async def find(self, spec: EphemeralMachineArgs) -> list[Machine]:
        wanted = identifying(spec.tags)
        devices = self._client.pages(f"/projects/{spec.project_id}/devices", "devices", tag=wanted[-1])
        found = [(machine_of(device), device.get("userdata")) async for device in devices]
        return [
            replace(machine, outdated=bool(user_data) and user_data != spec.user_data)
            for machine, user_data in found
            if set(wanted) <= set(machine.tags) and not machine.leaving
        ]

    async def create(self, spec: EphemeralMachineArgs) -> Machine:
        if spec.hardware_reservation_id not in (None, NEXT_AVAILABLE):
            await self._await_reservation(str(spec.hardware_reservation_id))
        found: list[Machine] = []

        async def is_made() -> bool:
            found.extend(await self.find(spec))
            return bool(found)

        path, wanted = f"/projects/{spec.project_id}/devices", f"take the order of {spec.hostname}"
        answer = await self._post_once(path, order(spec), wanted, is_made)
        return found[0] if found else machine_of(answer)

    async def _post_once(self, path: str, body: Any, wanted: str, is_done: Callable[[], Awaitable[bool]]) -> Any:
        """Send a request that must not take effect twice; `wanted` completes «did not …» in an error.

        It may have taken effect although the answer was lost: `is_done` checks that before a repetition. The result is
        then empty.
        """
        backoff = Backoff(timeout=self._timeout)
        while True:
            try:
                return await self._client.once("POST", path, json=body)
            except Passing as error:
                if backoff.over:
                    raise RemoteError(f"{self._client.where} did not {wanted}: {error}") from None
                await backoff.pause(error.wait)
            if await is_done():
                return {}

    async def _await_reservation(self, reservation_id: str) -> None:
        """Wait until a reserved server can be ordered: Metal needs minutes to clear it after its last machine."""
        backoff = Backoff(timeout=_CLEARING)
        while True:
            found = await self._client.repeat(
                "GET", f"/hardware-reservations/{reservation_id}", params={"include": "device"}
            )
            if found.get("provisionable"):
                return
            holder = dict(found.get("device") or {})
            if holder.get("hostname") and not machine_of(holder).leaving:
                raise RemoteError(
                    f"{self._client.where}: reservation {reservation_id} holds machine {holder['hostname']} "
                    f"({holder['id']}): delete that, or name another reservation"
                )
            if backoff.over:
                raise RemoteError(
                    f"{self._client.where}: reservation {reservation_id} is not provisionable after {_CLEARING:g} s; "
                    "run the same command again to continue to wait, or name another reservation"
                )
            await backoff.pause()

    async def get(self, machine_id: str) -> Machine | None:
        answer = await self._client.of_device(machine_id)
        return machine_of(answer) if answer else None

    async def delete(self, machine_id: str) -> None:
        backoff = Backoff(timeout=self._timeout)
        while True:
            try:
                await self._client.repeat("DELETE", f"/devices/{machine_id}", absent_ok=True)
            except Unprocessable as error:
                # «Cannot delete a device while it is provisioning»: retry until it is provisioned.
                if backoff.over:
                    raise RemoteError(f"{self._client.where} does not delete device {machine_id}: {error}") from None
                machine = await self.get(machine_id)
                if machine is None or machine.leaving:
                    return
                await backoff.pause()
            except Refused as error:
                if error.status != 403 or await self.get(machine_id):
                    raise  # a token that may not delete must not make a machine look deleted
                return
            else:
                return

    async def describe(self, machine_id: str, *, user_data: str | None, ipxe_script_url: str | None) -> None:
        """Set what the device boots at its next installation, and the userdata of its system."""
        body = {"userdata": user_data, "ipxe_script_url": ipxe_script_url, "always_pxe": False}
        given = {key: value for key, value in body.items() if value is not None}
        await self._client.repeat("PUT", f"/devices/{machine_id}", json=given)

    async def reinstall(self, machine_id: str) -> None:
        """Boot the device into its installer, but never twice: a device that is on its way there already is left alone.

        The disk with the operating system is not kept, and not wiped by Metal: our installer chooses what to wipe.
        """
        before = await self._reinstallations(machine_id)

        async def is_under_way() -> bool:
            machine = await self.get(machine_id)
            if machine is None or machine.leaving:
                raise RemoteError(
                    f"{self._client.where}: device {machine_id} does not exist any more: run `pulumi refresh`"
                )
            # It may have been completed already.
            return machine.state in _INSTALLING or bool(await self._reinstallations(machine_id) - before)

        if not await is_under_way():
            body = {"type": "reinstall", "preserve_data": True, "deprovision_fast": True}
            path = f"/devices/{machine_id}/actions"
            await self._post_once(path, body, f"reinstall device {machine_id}", is_under_way)

    async def _reinstallations(self, machine_id: str) -> set[str]:
        """The ids of the events about reinstallations."""
        answer = await self._client.of_device(machine_id, "/events", per_page=100)
        return {str(event.get("id")) for event in answer.get("events") or [] if "reinstall" in str(event.get("type"))}

    async def restart(self, machine_id: str) -> None:
        """Restart the device, or switch it on."""
        machine = await self.get(machine_id)
        kind = "power_on" if machine is not None and machine.state == "inactive" else "reboot"
        await self._client.repeat("POST", f"/devices/{machine_id}/actions", json={"type": kind})

    async def events(self, machine_id: str) -> list[Event]:
        answer = await self._client.of_device(machine_id, "/events", per_page=100)
        return [event_of(event) for event in answer.get("events", [])]

    async def spot_machines(self, request_id: str) -> list[str] | None:
        """The ids of the devices of a spot market request; None if the request does not exist."""
        answer = await self._client.repeat(
            "GET", f"/spot-market-requests/{request_id}", params={"include": "devices"}, absent_ok=True
        )
        return [id_of(each) for each in answer.get("devices") or answer.get("instances") or []] if answer else None

    async def end_spot_request(self, request_id: str) -> None:
        """Delete a spot market request together with its devices. A missing request is not an error."""
        path = f"/spot-market-requests/{request_id}"
        await self._client.repeat("DELETE", path, params={"force_termination": "true"}, absent_ok=True)

    @property
    def bgp(self) -> EquinixMetal:
        return self

    async def open_bgp(self, machine_id: str) -> None:
        async def is_open() -> bool:
            return any(session.get("address_family") == "ipv4" for session in await self._sessions(machine_id))

        if not await is_open():
            path, body = f"/devices/{machine_id}/bgp/sessions", {"address_family": "ipv4"}
            await self._post_once(path, body, f"open a BGP session of device {machine_id}", is_open)

    async def close_bgp(self, machine_id: str) -> None:
        for session in await self._sessions(machine_id):
            await self._client.repeat("DELETE", f"/bgp/sessions/{session['id']}", absent_ok=True)

    async def _sessions(self, machine_id: str) -> list[dict[str, Any]]:
        answer = await self._client.of_device(machine_id, "/bgp/sessions")
        return list(answer.get("bgp_sessions") or [])
