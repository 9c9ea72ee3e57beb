"""Events: records, and how they are noted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lab.metal_api.records import Record, saved
from lab.metal_api.state import Account


@saved("events", indexed=("device_id", "project_id", "about"))
@dataclass(kw_only=True)
class Event(Record):
    """Something that happened. Events of a device outlive it, in its project."""

    id: str
    type: str
    body: str
    state: str
    created_at: str
    project_id: str | None = None
    device_id: str | None = None
    about: list[str] = field(default_factory=list[str])
    """What else it is related to: `<collection>/<id>`."""


def note(
    account: Account,
    kind: str,
    body: str,
    *,
    project_id: str | None = None,
    device_id: str | None = None,
    state: str = "",
    about: Sequence[str] = (),
) -> Event:
    """Put something on the timeline of a project, a device, or of the organization alone."""
    return account.table(Event).add(
        Event(
            id=account.chance.uuid(),
            type=kind,
            body=body,
            state=state,
            created_at=account.now(),
            project_id=project_id,
            device_id=device_id,
            about=list(about),
        )
    )


def of_device(account: Account, device_id: str) -> list[Event]:
    """A device's events, oldest first."""
    return account.table(Event).where("device_id", device_id)


def of(account: Account, about: str) -> list[Event]:
    """Events that are related to something else, `<collection>/<id>`; oldest first."""
    return account.table(Event).where("about", about)


def of_project(account: Account, project_id: str) -> list[Event]:
    """A project's events and those of all that is, or was, in it; oldest first."""
    return account.table(Event).where("project_id", project_id)
