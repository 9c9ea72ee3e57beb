"""Events: records, and how they are noted."""

from __future__ import annotations

from dataclasses import dataclass

from lab.metal_api.records import Record, saved
from lab.metal_api.state import Account


@saved("events", indexed=("device_id", "project_id"))
@dataclass(kw_only=True)
class Event(Record):
    """Something that happened to a device. It outlives the device, in its project."""

    id: str
    type: str
    body: str
    state: str
    created_at: str
    project_id: str
    device_id: str


def note(account: Account, kind: str, body: str, *, project_id: str, device_id: str, state: str) -> Event:
    """Put something on the timeline of a device."""
    return account.table(Event).add(
        Event(
            id=account.chance.uuid(),
            type=kind,
            body=body,
            state=state,
            created_at=account.now(),
            project_id=project_id,
            device_id=device_id,
        )
    )


def of_device(account: Account, device_id: str) -> list[Event]:
    """A device's events, oldest first."""
    return account.table(Event).where("device_id", device_id)
