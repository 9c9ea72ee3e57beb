"""SSH keys of projects."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field

from lab.metal_api.body import Input, NotBlank
from lab.metal_api.devices import Device
from lab.metal_api.exceptions import NotImplementedInLab, Unprocessable
from lab.metal_api.listing import link
from lab.metal_api.operations import Call, operation, shows
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account


@saved("keys", indexed=("project_id",))
@dataclass(kw_only=True)
class SshKey(Record):
    """A public key of a project."""

    label: str
    key: str
    fingerprint: str
    project_id: str
    tags: list[str] = field(default_factory=list[str])


class _NewKey(Input):
    label: NotBlank
    key: NotBlank
    tags: list[str] | None = None
    instances_ids: list[str] | None = None


class _KeyChange(Input):
    label: NotBlank | None = None
    key: NotBlank | None = None
    tags: list[str] | None = None


def keys_of(account: Account, project_id: str) -> list[SshKey]:
    """Keys of one project."""
    return account.table(SshKey).where("project_id", project_id)


def device_keys(account: Account, device: Device) -> list[str]:
    """Public keys that may log in: those chosen at creation that still exist."""
    keys = account.table(SshKey)
    return [keys[identity].key for identity in device.ssh_key_ids if identity in keys]


@shows("ssh-keys", SshKey, key="ssh_keys")
def document(account: Account, key: SshKey) -> Json:
    """An SSH key; packngo reads its owner from `owner`, the API's description calls it `entity`."""
    owner = link("projects", key.project_id)
    return {
        "label": key.label,
        "key": key.key,
        "fingerprint": ":".join(key.fingerprint[index : index + 2] for index in range(0, 32, 2)),
        "owner": owner,
        "entity": owner,
        "tags": key.tags,
    }


@operation("POST /projects/{id}/ssh-keys", status=201)
def create(call: Call) -> Json:
    """The same key may be registered once per project, as on Metal."""
    project, wanted, account = call.project_id, _NewKey.of(call.body), call.account
    if wanted.instances_ids is not None:
        raise NotImplementedInLab("SSH keys for devices that are there already")
    fingerprint = _fingerprint(wanted.key)
    if any(key.fingerprint == fingerprint for key in keys_of(account, project)):
        raise Unprocessable("Key has already been taken")
    key = account.make(
        SshKey,
        label=wanted.label,
        key=wanted.key.strip(),
        fingerprint=fingerprint,
        tags=wanted.tags or [],
        project_id=project,
    )
    return document(account, key)


@operation("PUT /ssh-keys/{id}", "PATCH /ssh-keys/{id}")
def update(call: Call) -> Json:
    """Change label, key or tags, whichever are given."""
    key, wanted = call.find(SshKey), _KeyChange.of(call.body)
    changes = wanted.given("label", "tags")
    if wanted.key:
        changes |= {"key": wanted.key.strip(), "fingerprint": _fingerprint(wanted.key)}
    key.change(changes, call.account.now())
    return document(call.account, key)


@operation("DELETE /ssh-keys/{id}")
def delete(call: Call) -> None:
    """Machines that have it keep it."""
    del call.account.table(SshKey)[call.find(SshKey).id]


def _fingerprint(text: str) -> str:
    """The MD5 fingerprint the API shows; raises Unprocessable for what is not a public key."""
    parts = text.split()
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (IndexError, ValueError, binascii.Error):
        raise Unprocessable("Key is invalid") from None
    if not parts[0].startswith(("ssh-", "ecdsa-", "sk-")) or parts[0].encode() not in blob[:64]:
        raise Unprocessable("Key is invalid")
    return hashlib.md5(blob, usedforsecurity=False).hexdigest()
