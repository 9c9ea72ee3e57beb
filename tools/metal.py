"""As much of the Equinix Metal API as finding and deleting orphans takes, with back-off where repeating is safe.

Source of paths and fields: the Metal API's reference (devices, SSH keys); deleting is idempotent: a 404 means done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import httpx

from tools.errors import RecoveryFailed

DEFAULT_URL = "https://api.equinix.com/metal/v1"
_RETRIED = frozenset({429, 500, 502, 503, 504})
_ATTEMPTS = 6
_GONE = frozenset({403, 404})
"""Metal answers 403 for a device that was removed from the project, and 404 for one that never was."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A device as the API lists it."""

    id: str
    hostname: str
    state: str
    tags: frozenset[str]
    created: datetime | None
    """When it was ordered; None when the API does not say."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """An SSH key of a project."""

    id: str
    label: str
    created: datetime | None


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A reserved block of addresses."""

    id: str
    network: str
    tags: frozenset[str]
    created: datetime | None


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project that the token reaches."""

    id: str
    name: str
    created: datetime | None


def endpoint() -> str:
    """The API's base URL."""
    return os.environ.get("METAL_API_URL", DEFAULT_URL).rstrip("/")


class MetalApi:
    """A client for one token. `sleep` is injected for tests."""

    def __init__(self, token: str, *, base_url: str | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = httpx.Client(
            base_url=base_url or endpoint(), headers={"X-Auth-Token": token}, timeout=httpx.Timeout(20.0)
        )
        self._sleep = sleep

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def machines(self, project: str) -> list[Machine]:
        """Every device of a project; none when the project is gone."""
        return [
            Machine(
                id=str(item["id"]),
                hostname=str(item.get("hostname") or item["id"]),
                state=str(item.get("state") or "unknown"),
                tags=frozenset(map(str, item.get("tags") or ())),
                created=_time(item.get("created_at")),
            )
            for item in self._pages(f"/projects/{project}/devices", "devices")
        ]

    def keys(self, project: str) -> list[Key]:
        """Every SSH key of a project; none when the project is gone."""
        return [
            Key(id=str(item["id"]), label=str(item.get("label") or ""), created=_time(item.get("created_at")))
            for item in self._pages(f"/projects/{project}/ssh-keys", "ssh_keys")
        ]

    def reservations(self, project: str) -> list[Reservation]:
        """Every public IPv4 block that was reserved in a project, not what its machines have by themselves."""
        return [
            Reservation(
                id=str(item["id"]),
                network=str(item.get("network") or item["id"]),
                tags=frozenset(map(str, item.get("tags") or ())),
                created=_time(item.get("created_at")),
            )
            for item in self._pages(f"/projects/{project}/ips", "ip_addresses")
            if item.get("type") == "public_ipv4" and not item.get("management")
        ]

    def delete_reservation(self, id: str) -> None:
        """Give a reserved block back."""
        self._delete(f"/ips/{id}", f"reserved address {id}")

    def projects(self) -> list[Project]:
        """Every project that the token reaches."""
        return [
            Project(id=str(item["id"]), name=str(item.get("name") or ""), created=_time(item.get("created_at")))
            for item in self._pages("/projects", "projects")
        ]

    def delete_project(self, id: str) -> None:
        """Delete a project; the API refuses one that still has something in it."""
        self._delete(f"/projects/{id}", f"project {id}")

    def delete_machine(self, id: str, *, patience: float = 300.0) -> None:
        """Delete a device and wait until it is gone; one that is still being provisioned is asked for again."""
        waited = 0.0
        while True:
            response = self._request("DELETE", f"/devices/{id}", params={"force_delete": "true"})
            if response.status_code in _GONE:
                return
            if response.is_success and self._request("GET", f"/devices/{id}").status_code in _GONE:
                return
            if not response.is_success and response.status_code != 422:
                raise _refused(f"deleting machine {id}", response)
            if waited >= patience:
                raise RecoveryFailed(
                    f"machine {id} is still there {waited:.0f} s after it was deleted",
                    why=f"the API last answered {response.status_code}",
                    remedy="run this again, or delete it in the console",
                )
            self._sleep(2.0)
            waited += 2.0

    def delete_key(self, id: str) -> None:
        """Delete an SSH key."""
        self._delete(f"/ssh-keys/{id}", f"SSH key {id}")

    def _delete(self, path: str, what: str) -> None:
        response = self._request("DELETE", path)
        if not response.is_success and response.status_code not in _GONE:
            raise _refused(f"deleting {what}", response)

    def _pages(self, path: str, member: str) -> Iterator[dict[str, Any]]:
        page, last = 1, 1
        while page <= last:
            response = self._request("GET", path, params={"page": str(page), "per_page": "250"})
            if response.status_code == 404:
                return
            if not response.is_success:
                raise _refused(f"listing {member}", response)
            body = cast("dict[str, Any]", response.json())
            yield from cast("list[dict[str, Any]]", body.get(member) or [])
            last = int((body.get("meta") or {}).get("last_page") or 1)
            page += 1

    def _request(self, method: str, path: str, params: dict[str, str] | None = None) -> httpx.Response:
        """Every request made here may be repeated: reads, and deletions of one id."""
        delay = 0.5
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                response = self._client.request(method, path, params=params)
            except httpx.TransportError as error:
                if attempt == _ATTEMPTS:
                    raise RecoveryFailed(
                        f"the Metal API did not answer {method} {path}",
                        why=f"{type(error).__name__}: {error}",
                        remedy=f"see whether {self._client.base_url} can be reached, and run this again",
                    ) from error
            else:
                if response.status_code not in _RETRIED or attempt == _ATTEMPTS:
                    return response
                delay = max(delay, _retry_after(response))
            self._sleep(delay)
            delay = min(delay * 2, 10.0)
        raise AssertionError("unreachable: the last attempt returns or raises")


def _retry_after(response: httpx.Response) -> float:
    value = response.headers.get("Retry-After", "")
    return min(float(value), 60.0) if value.isdigit() else 0.0


def _refused(what: str, response: httpx.Response) -> RecoveryFailed:
    return RecoveryFailed(
        f"the Metal API refused {what}",
        why=f"{response.status_code}: {response.text[:300]}",
        remedy="see whether metal-ipi:platform.authToken may do that in the project",
    )


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
