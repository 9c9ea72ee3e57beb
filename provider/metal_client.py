"""The HTTP API of Equinix Metal (https://deploy.equinix.com/developers/api/metal): our only client.

It uses plain httpx instead of the official client, which retries nothing, not even 429 with its Retry-After, and cannot
check before it repeats a request. TLS is verified; SSL_CERT_FILE and HTTPS_PROXY are used, and METAL_API_TIMEOUT: the
timeout of one call, in seconds (30).

RemoteError          provider.errors: the API refuses, or did not answer during all repetitions
├── Refused          with the answer's status
│   └── Unprocessable    what should be deleted is in a state that does not allow it
Passing              only from `once`: a repetition may succeed
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from metal_ipi.provider import web
from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.configuration import MetalSettings
from metal_ipi.provider.errors import InvalidInputs, RemoteError

if TYPE_CHECKING:
    import httpx

_PAGE = 250
_PASSING_STATUS = frozenset({429, 500, 502, 503, 504})
_LONGEST_WAIT = 60


def _call_timeout() -> float:
    text = os.environ.get("METAL_API_TIMEOUT") or "30"
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise InvalidInputs(f"METAL_API_TIMEOUT is '{text}': set it to a number of seconds, or not at all")
    return seconds


class Passing(Exception):
    """A transient error; `wait` is the pause that the server asked for, in seconds."""

    def __init__(self, message: str, wait: float = 0) -> None:
        super().__init__(message)
        self.wait = wait


class Refused(RemoteError):
    """The API refused the request."""

    def __init__(self, message: str, status: int, words: str) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status, e.g. 403."""
        self.words = words
        """The API's own message."""


class Unprocessable(Refused):
    """What should be deleted is in a state that does not allow it."""


class MetalClient:
    """A client for one token; an asynchronous context manager."""

    def __init__(
        self,
        settings: MetalSettings,
        *,
        timeout: float = 120,
        patience: float = 30,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`timeout` is how long a call may be repeated, `patience` the timeout of one answer, in seconds."""
        import httpx

        self._endpoint = settings.endpoint
        self.timeout = timeout
        self._client = httpx.AsyncClient(
            headers={"X-Auth-Token": settings.auth_token, "User-Agent": "metal-ipi"},
            timeout=min(patience, _call_timeout()),
            transport=transport,
        )
        self.clock: tuple[datetime, datetime] | None = None
        """The time of the API's clock in its newest answer, and our time at that moment; None before the first
        answer."""

    async def __aenter__(self) -> MetalClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    @property
    def where(self) -> str:
        """The API's name in messages."""
        return f"the Metal API at {self._endpoint}"

    async def pages(self, path: str, member: str, **params: Any) -> AsyncIterator[dict[str, Any]]:
        """All items of a list, page by page."""
        page, last = 1, 1
        while page <= last:
            answer = await self.repeat("GET", path, params={**params, "per_page": _PAGE, "page": page})
            for item in answer.get(member) or []:
                yield item
            last = int((answer.get("meta") or {}).get("last_page") or 1)
            page += 1

    async def listed(self, path: str, member: str, **params: Any) -> list[Mapping[str, Any]]:
        """The whole list."""
        return [item async for item in self.pages(path, member, **params)]

    async def repeat(self, method: str, path: str, *, absent_ok: bool = False, **options: Any) -> dict[str, Any]:
        """Make a call that may be repeated safely, and repeat it on transient errors. With `absent_ok` a 404 gives an
        empty answer.

        Raises RemoteError.
        """
        backoff = Backoff(timeout=self.timeout)
        while True:
            try:
                return await self.once(method, path, absent_ok=absent_ok, **options)
            except Passing as error:
                if backoff.over:
                    raise RemoteError(f"{self.where}: {method} {path} failed for {self.timeout:g} s: {error}") from None
                await backoff.pause(error.wait)

    async def of_device(self, device: str, part: str = "", **params: Any) -> dict[str, Any]:
        """A device, or a part of it such as `/events`; empty if there is no such device.

        The API answers 403 for a device that Metal removed from its project itself (waitForActiveDevice in
        metal/resource_metal_device.go of the official provider), and for one that the token may not see. It is
        considered gone if the token can access projects, and none of them lists it.
        """
        try:
            return await self.repeat("GET", f"/devices/{device}{part}", absent_ok=True, params=params)
        except Refused as error:
            if error.status != 403:
                raise
            projects = await self.listed("/projects", "projects")
            listed = [each for project in projects for each in project.get("devices") or ()]
            ids = {str(each.get("id") or str(each.get("href", "")).rpartition("/")[2]) for each in listed}
            if device in ids or not projects:
                raise
            return {}

    async def once(self, method: str, path: str, *, absent_ok: bool = False, **options: Any) -> dict[str, Any]:
        """Make a call once. Raises Passing for a transient error, otherwise RemoteError."""
        import httpx

        try:
            answer = await self._client.request(method, self._endpoint + path, **options)
        except httpx.TransportError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise RemoteError(f"{self.where}: its TLS certificate is not trusted ({error})") from None
            raise Passing(f"{type(error).__name__} {error}".strip()) from None
        if (theirs := web.date_of(answer.headers)) is not None:
            self.clock = theirs, datetime.now(UTC)
        if answer.status_code == 404 and absent_ok:
            return {}
        if answer.status_code in _PASSING_STATUS:
            raise Passing(f"HTTP {answer.status_code}", wait=min(web.retry_after(answer.headers), _LONGEST_WAIT))
        if answer.status_code >= 400:
            kind = Unprocessable if answer.status_code == 422 and method == "DELETE" else Refused
            words = _error_text(answer)
            message = f"{self.where} refuses {method} {path}: {words} (HTTP {answer.status_code})"
            remedy = _REMEDIES.get(answer.status_code)
            raise kind(f"{message}; {remedy}" if remedy else message, answer.status_code, words)
        if not answer.content:
            return {}
        try:
            return dict(answer.json())
        except ValueError:
            raise Passing("an incomplete answer, not JSON") from None


_REMEDIES = {
    401: "the API token is not valid: set another one",
    403: "the API token may not do this: it needs to read and write the project",
    404: "it does not exist, or the token may not see it: correct the project id",
}


def _error_text(answer: httpx.Response) -> str:
    """The API's own message: `{"errors": [...]}` or `{"error": …}`."""
    try:
        body = answer.json()
    except ValueError:
        body = {}
    body = body if isinstance(body, dict) else {}
    return "; ".join(str(item) for item in body.get("errors") or [body.get("error") or answer.reason_phrase])
