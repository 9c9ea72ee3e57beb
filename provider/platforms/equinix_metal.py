"""Equinix Metal, by its HTTP API (https://deploy.equinix.com/developers/api/metal).

Plain httpx rather than the official client: that one retries nothing, not even 429 with its Retry-After, and knows no
way to look before asking again. TLS is verified; SSL_CERT_FILE and HTTPS_PROXY are honoured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provider.backoff import Backoff
from provider.configuration import MetalSettings
from provider.errors import RemoteError
from provider.platforms import Event, Machine, identifying
from provider.platforms.metal_spec import MetalSpec

if TYPE_CHECKING:
    import httpx

_PAGE = 250
_INSTALLING = frozenset({"queued", "provisioning", "reinstalling"})
_PASSING_STATUS = frozenset({429, 500, 502, 503, 504})


class EquinixMetal:
    """See `MachineDriver`."""

    def __init__(
        self, settings: MetalSettings, *, timeout: float = 120, transport: httpx.AsyncBaseTransport | None = None
    ):
        """`timeout` is how long a call may be repeated, in seconds."""
        import httpx

        self._endpoint = settings.endpoint
        self._timeout = timeout
        self._client = httpx.AsyncClient(
            headers={"X-Auth-Token": settings.auth_token, "User-Agent": "metal-ipi"}, timeout=30, transport=transport
        )

    async def __aenter__(self) -> EquinixMetal:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def find(self, spec: MetalSpec) -> list[Machine]:
        wanted = identifying(spec.tags) or spec.tags
        found: list[Machine] = []
        page = 1
        while True:
            params = (
                {"tag": wanted[-1], "per_page": _PAGE, "page": page} if wanted else {"per_page": _PAGE, "page": page}
            )
            answer = await self._repeat("GET", f"/projects/{spec.project_id}/devices", params=params)
            found += [_machine(device) for device in answer.get("devices", [])]
            if page >= int((answer.get("meta") or {}).get("last_page") or 1):
                break
            page += 1
        return [machine for machine in found if set(wanted) <= set(machine.tags) and not machine.leaving]

    async def create(self, spec: MetalSpec) -> Machine:
        body = _body(spec)
        backoff = Backoff(timeout=self._timeout)
        while True:
            try:
                answer = await self._once("POST", f"/projects/{spec.project_id}/devices", json=body)
                return _machine(answer)
            except _Passing as error:
                if backoff.over:
                    raise RemoteError(f"{self._where()} did not take the order of {spec.hostname}: {error}") from None
                await backoff.pause(error.wait)
            # The order may have been taken although the answer was lost.
            made = await self.find(spec)
            if made:
                return made[0]

    async def start(self, machine_id: str) -> None:
        return  # what is ordered boots by itself

    async def get(self, machine_id: str) -> Machine | None:
        answer = await self._repeat("GET", f"/devices/{machine_id}", absent_ok=True)
        return _machine(answer) if answer else None

    async def delete(self, machine_id: str) -> None:
        backoff = Backoff(timeout=self._timeout)
        while True:
            try:
                await self._repeat("DELETE", f"/devices/{machine_id}", absent_ok=True)
            except _Unprocessable as error:
                # «Cannot delete a device while it is provisioning»: it may be once it is done.
                if backoff.over:
                    raise RemoteError(f"{self._where()} does not delete device {machine_id}: {error}") from None
                machine = await self.get(machine_id)
                if machine is None or machine.leaving:
                    return
                await backoff.pause()
            else:
                return

    async def describe(self, machine_id: str, *, user_data: str | None, ipxe_script_url: str | None) -> None:
        """Sets what the device boots when it is installed again, and what its system reads then."""
        body = {"userdata": user_data, "ipxe_script_url": ipxe_script_url, "always_pxe": False}
        given = {key: value for key, value in body.items() if value is not None}
        await self._repeat("PUT", f"/devices/{machine_id}", json=given)

    async def reinstall(self, machine_id: str) -> None:
        """Boots the device into its installer, never twice: one that is on its way there already is left alone.

        Only the disk with the operating system is given up, and not wiped: its installer chooses what to wipe.
        """
        body = {"type": "reinstall", "preserve_data": True, "deprovision_fast": True}
        known = await self._reinstallations(machine_id)
        backoff = Backoff(timeout=self._timeout)
        while True:
            machine = await self.get(machine_id)
            if machine is None or machine.leaving:
                raise RemoteError(f"{self._where()}: device {machine_id} does not exist any more: run `pulumi refresh`")
            # The order may have been taken although the answer was lost; it may be carried out already.
            if machine.state in _INSTALLING or await self._reinstallations(machine_id) - known:
                return
            try:
                await self._once("POST", f"/devices/{machine_id}/actions", json=body)
            except _Passing as error:
                if backoff.over:
                    raise RemoteError(f"{self._where()} did not reinstall device {machine_id}: {error}") from None
                await backoff.pause(error.wait)
            else:
                return

    async def _reinstallations(self, machine_id: str) -> set[str]:
        """Ids of the events that tell of one."""
        answer = await self._repeat("GET", f"/devices/{machine_id}/events", params={"per_page": 100}, absent_ok=True)
        return {str(event.get("id")) for event in answer.get("events") or [] if "reinstall" in str(event.get("type"))}

    async def restart(self, machine_id: str) -> None:
        """Restarts the device, or switches it on."""
        machine = await self.get(machine_id)
        kind = "power_on" if machine is not None and machine.state == "inactive" else "reboot"
        await self._repeat("POST", f"/devices/{machine_id}/actions", json={"type": kind})

    async def events(self, machine_id: str) -> list[Event]:
        answer = await self._repeat("GET", f"/devices/{machine_id}/events", params={"per_page": 100}, absent_ok=True)
        return [_event(event) for event in (answer or {}).get("events", [])]

    async def open_bgp(self, machine_id: str) -> None:
        backoff = Backoff(timeout=self._timeout)
        while not any(session.get("address_family") == "ipv4" for session in await self._sessions(machine_id)):
            try:
                await self._once("POST", f"/devices/{machine_id}/bgp/sessions", json={"address_family": "ipv4"})
            except _Passing as error:  # it may have been opened although the answer was lost: look again
                if backoff.over:
                    raise RemoteError(
                        f"{self._where()} did not open a BGP session of device {machine_id}: {error}"
                    ) from None
                await backoff.pause(error.wait)
            else:
                return

    async def close_bgp(self, machine_id: str) -> None:
        for session in await self._sessions(machine_id):
            await self._repeat("DELETE", f"/bgp/sessions/{session['id']}", absent_ok=True)

    async def _sessions(self, machine_id: str) -> list[dict[str, Any]]:
        answer = await self._repeat("GET", f"/devices/{machine_id}/bgp/sessions", absent_ok=True)
        return list(answer.get("bgp_sessions") or [])

    async def _repeat(self, method: str, path: str, *, absent_ok: bool = False, **options: Any) -> dict[str, Any]:
        """For calls that may be made twice."""
        backoff = Backoff(timeout=self._timeout)
        while True:
            try:
                return await self._once(method, path, absent_ok=absent_ok, **options)
            except _Passing as error:
                if backoff.over:
                    raise RemoteError(
                        f"{self._where()}: {method} {path} failed for {self._timeout:g} s: {error}"
                    ) from None
                await backoff.pause(error.wait)

    async def _once(self, method: str, path: str, *, absent_ok: bool = False, **options: Any) -> dict[str, Any]:
        import httpx

        try:
            answer = await self._client.request(method, self._endpoint + path, **options)
        except httpx.TransportError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise RemoteError(f"{self._where()}: its TLS certificate is not trusted ({error})") from None
            raise _Passing(f"{type(error).__name__} {error}".strip()) from None
        # Metal answers 403 for a device that was removed (equinix/terraform-provider-metal takes both for gone).
        if answer.status_code in (403, 404) and absent_ok:
            return {}
        if answer.status_code in _PASSING_STATUS:
            raise _Passing(f"HTTP {answer.status_code}", wait=_retry_after(answer))
        if answer.status_code >= 400:
            kind = _Unprocessable if answer.status_code == 422 and method == "DELETE" else RemoteError
            raise kind(f"{self._where()} refuses {method} {path}: {_refusal(answer)}")
        if not answer.content:
            return {}
        try:
            return dict(answer.json())
        except ValueError:
            raise _Passing("half an answer, not JSON") from None

    def _where(self) -> str:
        return f"the Metal API at {self._endpoint}"


class _Passing(Exception):
    """May work the next time; `wait` is what the server asked for, in seconds."""

    def __init__(self, message: str, wait: float = 0) -> None:
        super().__init__(message)
        self.wait = wait


class _Unprocessable(RemoteError):
    """Not in the machine's present state."""


def _retry_after(answer: httpx.Response) -> float:
    """Seconds; the header's other form, a date, is left to the back-off."""
    value = answer.headers.get("Retry-After", "")
    return min(float(value), 60) if value.isdigit() else 0


_REMEDIES = {
    401: "the API token is not valid: set another one",
    403: "the API token may not do this: it needs to read and write the project",
    404: "there is no such thing, or the token may not see it: correct the project id",
}


def _refusal(answer: httpx.Response) -> str:
    """The API's own words: `{"errors": [...]}` or `{"error": …}`."""
    try:
        body = answer.json()
    except ValueError:
        body = {}
    body = body if isinstance(body, dict) else {}
    words = "; ".join(str(item) for item in body.get("errors") or [body.get("error") or answer.reason_phrase])
    remedy = _REMEDIES.get(answer.status_code)
    return f"{words} (HTTP {answer.status_code}){'; ' + remedy if remedy else ''}"


def _body(spec: MetalSpec) -> dict[str, Any]:
    body: dict[str, Any] = {
        "hostname": spec.hostname,
        "plan": spec.plan,
        "metro": spec.metro,
        "facility": list(spec.facilities) or None,
        "operating_system": spec.operating_system,
        "ipxe_script_url": spec.ipxe_script_url,
        "always_pxe": spec.always_pxe,
        "userdata": spec.user_data,
        "tags": list(spec.tags),
        "billing_cycle": "hourly",
        # Given, even empty, it keeps the keys of other users of the project off the machine.
        "project_ssh_keys": list(spec.project_ssh_key_ids),
    }
    return {key: value for key, value in body.items() if value is not None}


def _machine(device: dict[str, Any]) -> Machine:
    addresses: list[dict[str, Any]] = device.get("ip_addresses") or []

    def address(family: int, *, public: bool) -> str | None:
        fits = [a for a in addresses if a.get("address_family") == family and bool(a.get("public")) == public]
        managed = [a for a in fits if a.get("management", True)] or fits
        return str(managed[0]["address"]) if managed else None

    facility = (device.get("facility") or {}).get("code", "")
    return Machine(
        id=str(device["id"]),
        hostname=str(device.get("hostname", "")),
        state=str(device.get("state", "")),
        tags=tuple(device.get("tags") or ()),
        public_ipv4=address(4, public=True),
        private_ipv4=address(4, public=False),
        public_ipv6=address(6, public=True),
        # The API calls it a host name and gives `<id>@<host>`.
        console=str(device.get("sos") or f"sos.{facility}.platformequinix.com").rpartition("@")[2],
        progress=device.get("provisioning_percentage"),
    )


def _event(event: dict[str, Any]) -> Event:
    text = event.get("interpolated") or event.get("body") or ""
    return Event(type=str(event.get("type", "")), text=str(text), state=str(event.get("state") or ""))
