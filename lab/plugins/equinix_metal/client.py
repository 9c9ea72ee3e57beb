"""The Metal API over HTTPS. httpx is imported at the first use: a preview needs none of it.

ApiError         the API said no
├── Gone         404 in the API's own words: not the answer of something in between
└── (status)     403, 422 ... see `status`
Unreachable      no answer to be had, after all attempts
"""

from __future__ import annotations

import asyncio
import os
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from lab.plugins.base import PluginError
from lab.plugins.values import UNKNOWN, Json

if TYPE_CHECKING:
    import httpx

API_URL = "https://api.equinix.com/metal/v1"
TIMEOUT_SECONDS = float(os.environ.get("METAL_API_TIMEOUT") or 30)
"""How long one call may take."""
CONNECTIONS = 16
RETRIES = 10
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.5, 30.0
PER_PAGE = 250
CLOCK_MARGIN_SECONDS = 2.0
"""`created_at` has whole seconds, and so has the Date header."""


class ApiError(PluginError):
    """The API said no."""

    def __init__(self, call: str, status: int, reason: str) -> None:
        super().__init__(f"Metal API: {call}: {status} {reason}")
        self.status = status


class Gone(ApiError):
    """The API says that there is no such thing (any more)."""


class Unreachable(PluginError):
    """No usable answer, after all attempts."""


class _Uncertain(Exception):
    """Sent, but nobody knows whether it was done."""


class _NotDone(Exception):
    """Certainly not done, worth another attempt."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A successful answer."""

    document: dict[str, Json]
    server_time: datetime | None = None
    """The API's clock when it answered."""


Finder = Callable[[datetime], Awaitable[dict[str, Json] | None]]
"""Looks for what an order may have made since a time by our clock."""


class Client:
    """Retries where it is safe: what only reads or repeats harmlessly after any failure, an order only when it was
    certainly not taken, or when looking shows that nothing came of it."""

    def __init__(self) -> None:
        self.token = ""
        self._http: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Let go of its connections."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def get(self, path: str, **query: str) -> Answer:
        """Read something."""
        return await self._repeat("GET", path, query=query)

    async def entries(self, path: str, collection: str, **query: str) -> AsyncIterator[Answer]:
        """What a list holds, page by page; lists that know no pages answer with everything at once."""
        page: Json = 1
        while page:
            answer = await self.get(path, **{"per_page": str(PER_PAGE), "page": str(page), **query})
            found: list[dict[str, Json]] = answer.document.get(collection) or []
            for document in found:
                yield Answer(document=document, server_time=answer.server_time)
            page = page + 1 if (answer.document.get("meta") or {}).get("next") else None

    async def change(self, method: str, path: str, body: Json) -> Answer:
        """Set values, by PUT, PATCH, or a POST that does no harm when it is done twice."""
        return await self._repeat(method, path, body)

    async def delete(self, path: str, body: Json = None) -> bool:
        """Remove something; that it is gone or never was ours to see is as good. Whether it was there."""
        try:
            await self._repeat("DELETE", path, body)
        except ApiError as error:
            if not isinstance(error, Gone) and error.status != 403:
                raise
            return False
        return True

    async def order(self, path: str, body: Json, find: Finder, **query: str) -> dict[str, Json]:
        """Make something exactly once; `find` is asked whenever an answer leaves in doubt whether it was made."""
        return (await self._repeat("POST", path, body, query, find)).document

    async def _repeat(
        self, method: str, path: str, body: Json = None, query: dict[str, str] | None = None, find: Finder | None = None
    ) -> Answer:
        since, reason = datetime.now(UTC), ""
        for attempt in range(RETRIES + 1):
            try:
                return await self._send(method, path, body, query or {})
            except (_NotDone, _Uncertain) as error:
                reason = str(error)
                if attempt < RETRIES:
                    await asyncio.sleep(_pause(attempt, getattr(error, "wait", None)))
                if find and isinstance(error, _Uncertain) and (document := await find(since)):
                    return Answer(document=document)
        raise Unreachable(f"Metal API: {method} {path}: {reason}, after {RETRIES + 1} attempts")

    async def _send(self, method: str, path: str, body: Json, query: dict[str, str]) -> Answer:
        import httpx

        call = f"{method} {path}"
        http = self._connect()
        try:
            answer = await http.request(method, path, json=body, params=query)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY" in str(error):
                raise Unreachable(f"Metal API: {call}: its certificate is not trusted: {error}") from None
            raise _NotDone(f"cannot connect: {error}") from None
        except httpx.HTTPError as error:
            raise _Uncertain(f"{type(error).__name__}: {error}") from None
        if answer.status_code == 429:
            raise _NotDone("429 too many requests", _retry_after(answer.headers.get("Retry-After")))
        if answer.status_code >= 500 and answer.status_code != 501:
            raise _Uncertain(f"{answer.status_code} {answer.reason_phrase}")
        document = _document(answer)
        if answer.is_success:
            if document is None and answer.content:
                raise _Uncertain("the answer is not a JSON object")
            return Answer(document=document or {}, server_time=_date(answer.headers.get("Date")))
        kind = Gone if answer.status_code == 404 and document is not None else ApiError
        raise kind(call, answer.status_code, _reason(document, answer.reason_phrase))

    def _connect(self) -> httpx.AsyncClient:
        import httpx

        if self.token in ("", UNKNOWN):
            raise PluginError("equinix-metal: authToken is required: set equinix-metal:authToken or METAL_AUTH_TOKEN")
        if self._http is None:
            self._http = httpx.AsyncClient(
                base_url=os.environ.get("METAL_API_URL", API_URL).rstrip("/"),
                headers={"X-Auth-Token": self.token, "Accept": "application/json", "User-Agent": "lab-equinix-metal"},
                verify=ssl.create_default_context(),
                timeout=TIMEOUT_SECONDS,
                limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
            )
        return self._http


def made_since(entry: Answer, since: datetime) -> bool:
    """Whether it was made after a time by our clock, told by the API's clock."""
    try:
        created = datetime.fromisoformat(str(entry.document.get("created_at", "")).replace("Z", "+00:00"))
    except ValueError:
        return False
    if created.tzinfo is None:
        created = created.replace(tzinfo=UTC)
    now = datetime.now(UTC)
    age = ((entry.server_time or now) - created).total_seconds()
    return age <= (now - since).total_seconds() + CLOCK_MARGIN_SECONDS


def _pause(attempt: int, wanted: float | None) -> float:
    """As long as the API wants, else longer each time, and never all clients at once."""
    wait = FIRST_WAIT_SECONDS * 2**attempt * random.uniform(0.75, 1.25) if wanted is None else wanted
    return min(wait, LONGEST_WAIT_SECONDS)


def _document(answer: httpx.Response) -> dict[str, Json] | None:
    try:
        document: Any = answer.json()
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _reason(document: dict[str, Json] | None, fallback: str) -> str:
    if document is None:
        return fallback
    errors: Json = document.get("errors") or [document.get("error") or fallback]
    return "; ".join(str(error) for error in errors)


def _retry_after(value: str | None) -> float | None:
    try:
        return float(value) if value else None
    except ValueError:
        return None


def _date(value: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(value) if value else None
    except ValueError:
        return None
