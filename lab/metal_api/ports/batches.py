"""Batches of VLAN assignments: asked for at once, carried out a little later, all of them or none."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, cast

from lab.metal_api.exceptions import NotFound, Unprocessable, told
from lab.metal_api.ports.models import (
    Port,
    VlanAssignment,
    assign,
    assignments_of,
    find,
    find_network,
    set_native,
    unassign,
)
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

SECONDS = 0.5
"""How long a batch takes, from its request on."""
_STATES = ("assigned", "unassigned")


@dataclass(kw_only=True)
class Wanted:
    """What is to become of one VLAN."""

    network_id: str
    vlan: int
    state: str
    native: bool


@saved("vlan_batches", indexed=("device_id", "state"))
@dataclass(kw_only=True)
class VlanBatch(Record):
    """A batch of changes to the VLANs of one port."""

    id: str
    device_id: str
    project_id: str
    port_id: str
    wanted: list[Wanted]
    due: float
    """When it is carried out, in seconds of the epoch."""
    created_at: str
    updated_at: str
    state: str = "queued"
    error_messages: list[str] = field(default_factory=list[str])


def batches_of(account: Account, port: Port) -> list[VlanBatch]:
    """A port's batches, oldest first."""
    found = account.table(VlanBatch).where("device_id", port.device.id)
    return [entry for entry in found if entry.port_id == port.id]


def batch(account: Account, port: Port, identity: str) -> VlanBatch:
    """One of a port's batches by id, or NotFound."""
    found = account.table(VlanBatch).find(identity)
    if found.port_id != port.id:
        raise NotFound
    return found


def create(account: Account, port: Port, body: Json) -> VlanBatch:
    """Take in a batch; what it cannot do is told when it is carried out, but for VLANs that do not exist."""
    entries = body.get("vlan_assignments")
    if not isinstance(entries, list) or not entries:
        raise Unprocessable("Vlan assignments can't be blank")
    now = account.now()
    return account.table(VlanBatch).add(
        VlanBatch(
            id=account.chance.uuid(),
            device_id=port.device.id,
            project_id=port.device.project_id,
            port_id=port.id,
            wanted=[_wanted(account, port, entry) for entry in cast("list[Any]", entries)],
            due=account.clock.now().timestamp() + SECONDS,
            created_at=now,
            updated_at=now,
        )
    )


def settle(account: Account) -> None:
    """Carry out what is due, show that the rest is on its way."""
    table, now = account.table(VlanBatch), account.clock.now().timestamp()
    for entry in [*table.where("state", "queued"), *table.where("state", "in_progress")]:
        if entry.due <= now:
            _carry_out(account, entry)
        elif entry.state != "in_progress":  # what is assigned is written, and this is asked at every request
            entry.state = "in_progress"


def _carry_out(account: Account, entry: VlanBatch) -> None:
    try:
        port = find(account, entry.port_id)
        with _all_or_none(account, port):
            for wanted in entry.wanted:
                _change(account, port, wanted)
            for wanted in entry.wanted:
                if wanted.native:
                    set_native(account, port, wanted.network_id)
    except Exception as error:  # whatever it is: who asks for something else now is not to hear of it
        entry.error_messages = told(error)
    entry.updated_at = account.now()
    entry.state = "failed" if entry.error_messages else "completed"


@contextlib.contextmanager
def _all_or_none(account: Account, port: Port) -> Generator[None]:
    """Put the VLANs of a port back as they were if something is raised."""
    before = [replace(existing) for existing in assignments_of(account, port.device, port.name)]
    try:
        yield
    except Exception:
        table = account.table(VlanAssignment)
        for existing in assignments_of(account, port.device, port.name):
            del table[existing.id]
        for existing in before:
            table.add(existing)
        raise


def _change(account: Account, port: Port, wanted: Wanted) -> None:
    """Unlike a request about one VLAN, a batch says what is to be, which may be so already."""
    current = {existing.network_id for existing in assignments_of(account, port.device, port.name)}
    if wanted.state == "assigned" and wanted.network_id not in current:
        assign(account, port, wanted.network_id)
    elif wanted.state == "unassigned" and wanted.network_id in current:
        unassign(account, port, wanted.network_id)


def _wanted(account: Account, port: Port, entry: object) -> Wanted:
    if not isinstance(entry, dict):
        raise Unprocessable("Vlan assignments must be a list of objects")
    wanted = cast("Json", entry)
    network = find_network(account, port, wanted.get("vlan"))
    if wanted.get("state", "assigned") not in _STATES:
        raise Unprocessable(f"State must be one of {', '.join(_STATES)}")
    return Wanted(
        network_id=network.id,
        vlan=network.vxlan,
        state=wanted.get("state", "assigned"),
        native=bool(wanted.get("native")),
    )
