"""The account: records by id and the rules of changing them. Knows nothing of HTTP and starts nothing."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from lab.metal_api.exceptions import NotFound, Unprocessable
from lab.metal_api.models import (
    Assignment,
    BgpConfig,
    BgpSession,
    Device,
    Event,
    Fault,
    Json,
    Project,
    Reservation,
    SshKey,
    from_json,
)
from lab.metal_api.sources import Chance, Clock, timestamp

MAX_PROJECT_NAME = 80
GONE = "deprovisioning"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who the one user of the lab is."""

    token: str
    organization_id: str
    project_id: str
    """A project that is there from the start."""


class Account:
    """Everything one API token can see."""

    def __init__(self, identity: Identity, clock: Clock, chance: Chance) -> None:
        self.identity = identity
        self.clock = clock
        self.chance = chance
        self.projects: dict[str, Project] = {}
        self.keys: dict[str, SshKey] = {}
        self.devices: dict[str, Device] = {}
        self.reservations: dict[str, Reservation] = {}
        self.assignments: dict[str, Assignment] = {}
        self.bgp_configs: dict[str, BgpConfig] = {}
        """By project."""
        self.bgp_sessions: dict[str, BgpSession] = {}
        self.faults: dict[str, Fault] = {}
        self.changed: Callable[[], None] = lambda: None
        """Called after every change; the store hooks in here."""
        self.rerouted: Callable[[], None] = lambda: None
        """Called after every change that concerns the facility's router; `routing` hooks in here."""
        now = self.now()
        default = Project(id=identity.project_id, name="lab", created_at=now, updated_at=now)
        self.projects[default.id] = default

    def now(self) -> str:
        """The present, as the API writes it."""
        return timestamp(self.clock.now())

    def routes_changed(self) -> None:
        """Note a change that is to be saved, and that the router has to know of."""
        self.changed()
        self.rerouted()

    # Saving

    def snapshot(self) -> dict[str, list[Any]]:
        """All records, to be written as JSON at once: they are not copied, which takes longer than writing them."""
        return {
            "projects": list(self.projects.values()),
            "keys": list(self.keys.values()),
            "devices": list(self.devices.values()),
            "reservations": list(self.reservations.values()),
            "assignments": list(self.assignments.values()),
            "bgp_configs": list(self.bgp_configs.values()),
            "bgp_sessions": list(self.bgp_sessions.values()),
            "faults": list(self.faults.values()),
        }

    def restore(self, document: Json) -> None:
        """Take over what `snapshot` wrote."""
        self.projects = {entry["id"]: from_json(Project, entry) for entry in document["projects"]}
        self.keys = {entry["id"]: from_json(SshKey, entry) for entry in document["keys"]}
        self.devices = {entry["id"]: from_json(Device, entry) for entry in document["devices"]}
        self.reservations = {entry["id"]: from_json(Reservation, entry) for entry in document.get("reservations", [])}
        self.assignments = {entry["id"]: from_json(Assignment, entry) for entry in document.get("assignments", [])}
        self.bgp_configs = {
            entry["project_id"]: from_json(BgpConfig, entry) for entry in document.get("bgp_configs", [])
        }
        self.bgp_sessions = {entry["id"]: from_json(BgpSession, entry) for entry in document.get("bgp_sessions", [])}
        self.faults = {entry["id"]: from_json(Fault, entry) for entry in document["faults"]}

    # Projects

    def project(self, identity: str) -> Project:
        """By id, or NotFound."""
        return _get(self.projects, identity)

    def create_project(self, body: Json) -> Project:
        """A new, empty project."""
        now = self.now()
        project = Project(
            id=self.chance.uuid(),
            name=_project_name(body.get("name")),
            customdata=_mapping(body.get("customdata")),
            tags=_strings(body.get("tags"), "Tags"),
            created_at=now,
            updated_at=now,
        )
        self.projects[project.id] = project
        self.changed()
        return project

    def update_project(self, identity: str, body: Json) -> Project:
        """Change the fields that are given."""
        project = self.project(identity)
        changes: Json = {}
        if "name" in body:
            changes["name"] = _project_name(body["name"])
        if "customdata" in body:
            changes["customdata"] = _mapping(body["customdata"])
        if "tags" in body:
            changes["tags"] = _strings(body["tags"], "Tags")
        if "backend_transfer_enabled" in body:
            changes["backend_transfer_enabled"] = bool(body["backend_transfer_enabled"])
        project = replace(project, **changes, updated_at=self.now())
        self.projects[identity] = project
        self.changed()
        return project

    def delete_project(self, identity: str) -> None:
        """Refused as long as devices or reserved addresses are in it; its keys and BGP configuration go with it."""
        self.project(identity)
        if any(device.project_id == identity for device in self.devices.values()):
            raise Unprocessable("Cannot delete a project with active devices. Please delete the devices first.")
        if any(block.project_id == identity for block in self.reservations.values()):
            raise Unprocessable("Cannot delete a project with IP reservations. Please delete the reservations first.")
        for key in self.project_keys(identity):
            del self.keys[key.id]
        self.bgp_configs.pop(identity, None)
        del self.projects[identity]
        self.changed()

    # SSH keys

    def key(self, identity: str) -> SshKey:
        """By id, or NotFound."""
        return _get(self.keys, identity)

    def project_keys(self, project_id: str) -> list[SshKey]:
        """Keys of one project."""
        return [key for key in self.keys.values() if key.project_id == project_id]

    def create_key(self, body: Json, project_id: str | None) -> SshKey:
        """A new key; the same key material may be registered once per owner, as on Metal."""
        if project_id is not None:
            self.project(project_id)
        text, label = _public_key(body.get("key")), _label(body.get("label"))
        owned = [key for key in self.keys.values() if key.project_id == project_id]
        fingerprint = _fingerprint(text)
        if any(key.fingerprint == fingerprint for key in owned):
            raise Unprocessable("Key has already been taken")
        now = self.now()
        key = SshKey(
            id=self.chance.uuid(),
            label=label,
            key=text,
            fingerprint=fingerprint,
            tags=_strings(body.get("tags"), "Tags"),
            created_at=now,
            updated_at=now,
            project_id=project_id,
        )
        self.keys[key.id] = key
        self.changed()
        return key

    def update_key(self, identity: str, body: Json) -> SshKey:
        """Change label, key or tags."""
        key = self.key(identity)
        changes: Json = {}
        if "label" in body:
            changes["label"] = _label(body["label"])
        if "key" in body:
            text = _public_key(body["key"])
            changes |= {"key": text, "fingerprint": _fingerprint(text)}
        if "tags" in body:
            changes["tags"] = _strings(body["tags"], "Tags")
        key = replace(key, **changes, updated_at=self.now())
        self.keys[identity] = key
        self.changed()
        return key

    def delete_key(self, identity: str) -> None:
        """Forget a key; machines that have it keep it."""
        self.key(identity)
        del self.keys[identity]
        self.changed()

    # Devices

    def device(self, identity: str) -> Device:
        """By id, or NotFound."""
        return _get(self.devices, identity)

    def project_devices(self, project_id: str) -> list[Device]:
        """Devices of one project, newest first as the API lists them."""
        self.project(project_id)
        return [device for device in reversed(self.devices.values()) if device.project_id == project_id]

    def add_device(self, device: Device) -> None:
        """Take in a device that `ordering` made."""
        self.devices[device.id] = device
        self.changed()

    def set_state(self, device: Device, state: str, *, powered: bool | None = None) -> None:
        """Move a device on in its life."""
        device.state = state
        if powered is not None:
            device.powered = powered
        device.updated_at = self.now()
        self.changed()

    def add_event(self, device: Device, kind: str, body: str, state: str | None = None) -> Event:
        """Put something on the device's timeline."""
        event = Event(id=self.chance.uuid(), type=kind, body=body, state=state or device.state, created_at=self.now())
        device.events.append(event)
        self.changed()
        return event

    def remove_device(self, identity: str) -> None:
        """The end of deprovisioning: the device is gone, with its addresses, assignments and BGP sessions."""
        if self.devices.pop(identity, None) is None:
            return
        for records in (self.assignments, self.bgp_sessions):
            for record in [entry for entry in records.values() if entry.device_id == identity]:
                del records[record.id]
        self.routes_changed()

    def device_at(self, address: str) -> Device | None:
        """Who has this address, public or private."""
        for device in self.devices.values():
            if any(entry.address == address for entry in device.addresses):
                return device
        return None

    def device_keys(self, device: Device) -> list[str]:
        """Public keys that may log in: those chosen at creation that still exist, and those given in the request."""
        registered = [self.keys[identity].key for identity in device.ssh_key_ids if identity in self.keys]
        return list(dict.fromkeys([*registered, *device.extra_keys]))

    def addresses_taken(self) -> set[str]:
        """Every address of every device, including those that are on their way out."""
        return {entry.address for device in self.devices.values() for entry in device.addresses}


def _get(records: dict[str, Any], identity: str) -> Any:
    try:
        return records[identity]
    except KeyError:
        raise NotFound from None


def _project_name(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unprocessable("Name can't be blank")
    if len(value) > MAX_PROJECT_NAME:
        raise Unprocessable(f"Name is too long (maximum is {MAX_PROJECT_NAME} characters)")
    return value


def _label(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unprocessable("Label can't be blank")
    return value


def _public_key(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unprocessable("Key can't be blank")
    text = value.strip()
    _fingerprint(text)
    return text


def _fingerprint(text: str) -> str:
    """The MD5 fingerprint the API shows; raises Unprocessable for what is no public key."""
    parts = text.split()
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (IndexError, binascii.Error):
        raise Unprocessable("Key is invalid") from None
    if not parts[0].startswith(("ssh-", "ecdsa-", "sk-")) or parts[0].encode() not in blob[:64]:
        raise Unprocessable("Key is invalid")
    return hashlib.md5(blob, usedforsecurity=False).hexdigest()


def _mapping(value: object) -> Json:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unprocessable("Customdata must be a JSON object")
    return {str(key): entry for key, entry in value.items()}


def _strings(value: object, what: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in cast("list[Any]", value)):
        raise Unprocessable(f"{what} must be a list of strings")
    return [str(entry) for entry in cast("list[Any]", value)]
