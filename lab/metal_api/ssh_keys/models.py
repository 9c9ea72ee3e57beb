"""SSH keys: records and rules."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field

from lab.metal_api.body import Body
from lab.metal_api.devices.models import Device
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account


@saved("keys", indexed=("project_id",))
@dataclass(kw_only=True)
class SshKey(Record):
    """A public key of a project."""

    id: str
    label: str
    key: str
    fingerprint: str
    created_at: str
    updated_at: str
    project_id: str
    tags: list[str] = field(default_factory=list[str])


def project_keys(account: Account, project_id: str) -> list[SshKey]:
    """Keys of one project."""
    return account.table(SshKey).where("project_id", project_id)


def device_keys(account: Account, device: Device) -> list[str]:
    """Public keys that may log in: those chosen at creation that still exist, and those given in the request."""
    keys = account.table(SshKey)
    registered = [keys[identity].key for identity in device.ssh_key_ids if identity in keys]
    return list(dict.fromkeys([*registered, *device.extra_keys]))


def create(account: Account, project_id: str, document: Json) -> SshKey:
    """A new key; the same key material may be registered once per project, as on Metal.

    With `instances_ids` devices get it that are there already: those named, or all where the list is empty.
    """
    body = Body(document)
    label, text, tags = body.text("label", required=True), body.text("key", required=True), body.texts("tags")
    wanted, devices = body.texts("instances_ids"), account.table(Device)
    for identity in wanted or ():
        if identity not in devices or devices[identity].project_id != project_id:
            body.problems.append(f"instances_ids: {identity} is not a device of this project")
    body.check()
    fingerprint = _fingerprint(text or "")
    if any(key.fingerprint == fingerprint for key in project_keys(account, project_id)):
        raise Unprocessable("Key has already been taken")
    now = account.now()
    key = account.table(SshKey).add(
        SshKey(
            id=account.chance.uuid(),
            label=label or "",
            key=(text or "").strip(),
            fingerprint=fingerprint,
            tags=tags or [],
            created_at=now,
            updated_at=now,
            project_id=project_id,
        )
    )
    if wanted is not None:
        for device in [devices[identity] for identity in wanted] or devices.where("project_id", project_id):
            device.ssh_key_ids = [*device.ssh_key_ids, key.id]
    return key


def update(account: Account, key: SshKey, document: Json) -> None:
    """Change label, key or tags, whichever are given."""
    body = Body(document)
    label = body.text("label", required="label" in document)
    text = body.text("key", required="key" in document)
    tags = body.texts("tags")
    body.check()
    fingerprint = _fingerprint(text) if text else key.fingerprint
    key.label, key.key, key.fingerprint = label or key.label, (text or key.key).strip(), fingerprint
    key.tags = key.tags if tags is None else tags
    key.updated_at = account.now()


def delete(account: Account, key: SshKey) -> None:
    """Forget a key; machines that have it keep it."""
    del account.table(SshKey)[key.id]


def _fingerprint(text: str) -> str:
    """The MD5 fingerprint the API shows; raises Unprocessable for what is no public key."""
    parts = text.split()
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (IndexError, ValueError, binascii.Error):
        raise Unprocessable("Key is invalid") from None
    if not parts[0].startswith(("ssh-", "ecdsa-", "sk-")) or parts[0].encode() not in blob[:64]:
        raise Unprocessable("Key is invalid")
    return hashlib.md5(blob, usedforsecurity=False).hexdigest()
