"""Ignition configs that we render, of spec 3.3.0 (coreos/ignition docs/configuration-v3_3.md): pointers for userdata,
live systems, and the identity of a node.

Userdata is readable by whoever reaches the metadata service, so it holds pointers and no secrets; what it points to
is pinned by hash, or served by the cluster's machine config server under the installer's certificate authority.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from metal_ipi.components.boot.host_keys import HostKey

SPEC = "3.3.0"
# Metal takes no more userdata than this; ours are a few KiB (openshift/enhancements PR 436).
USERDATA_LIMIT = 64 * 1024
# Of the platforms we have, those whose metadata Afterburn reads (coreos/afterburn, docs/platforms.md).
AFTERBURN_PLATFORMS = ("packet",)


class IgnitionError(ValueError):
    """The config breaks the Ignition specification; the message shows no content."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a config to merge is."""

    url: str
    """An https URL; an http one only of what is no secret, with its hash."""
    hash: str | None = None
    """`sha512-` and 128 hexadecimal digits; None only for what the machine config server makes itself."""


@dataclass(frozen=True, kw_only=True)
class NodeFile:
    """A file of a node, with its text."""

    path: str
    text: str
    mode: int


@dataclass(frozen=True, kw_only=True)
class NodeLink:
    """A symbolic link of a node."""

    path: str
    target: str


@dataclass(frozen=True, kw_only=True)
class NodeUnit:
    """An enabled systemd unit of a node."""

    name: str
    text: str


def network_service(
    name: str, *, description: str, program: str, before: str | None = None, removes: str | None = None
) -> NodeUnit:
    """A unit that keeps a bash script running from when there is a network on, whatever becomes of it.

    Args:
        before: a unit that starts only after this one has.
        removes: a file that an earlier run may have left; it is removed before the script starts.
    """
    return NodeUnit(
        name=name,
        text=(
            "[Unit]\n"
            f"Description={description}\n"
            "Wants=network-online.target\n"
            "After=network-online.target\n"
            + (f"Before={before}\n" if before else "")
            + "[Service]\n"
            + (f"ExecStartPre=/bin/rm -f {removes}\n" if removes else "")
            + f"ExecStart=/bin/bash {program}\n"
            "Restart=always\n"
            "RestartSec=5\n"
            "[Install]\n"
            "WantedBy=multi-user.target\n"
        ),
    )


def pointer(
    *,
    hostname: str | None,
    platform_id: str,
    merge: Sequence[Source],
    certificate_authorities: Sequence[str],
    authorized_keys: Sequence[str],
    files: Sequence[NodeFile] = (),
    units: Sequence[NodeUnit] = (),
    masked: Sequence[str] = (),
) -> str:
    """The first config of a node, its userdata where it is given some: its name, who may log in, where the rest is.

    Args:
        hostname: the node's full name; None in what many nodes share (`own_pointer` has it then).
        platform_id: Ignition's platform id; Afterburn runs where it knows that platform.
        merge: what to fetch and merge, in order: later ones win over earlier ones, and all over the pointer itself
            (seen with Ignition 2.14: what is merged overrides).
        certificate_authorities: `source` URLs of certificate authorities, as the installer's own pointers have them.
        authorized_keys: SSH public keys for user `core`.
        files, units: what else the node has from the start; readable by whoever reaches the metadata service.
        masked: units of what is merged that must never start. A merged config that enables one does not change that.
    Raises IgnitionError where an argument cannot stand in a config, or when the result is too large for userdata.
    """
    document = _document(
        {
            "ignition": {
                "config": {"merge": [_resource(source) for source in merge]},
                **_security(certificate_authorities),
            },
            "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": list(authorized_keys)}]},
            "storage": {
                "files": [
                    *([] if hostname is None else [_hostname(hostname)]),
                    *(_file(file.path, file.text, file.mode) for file in files),
                ]
            },
            "systemd": {
                "units": [
                    *([_afterburn_wanted()] if platform_id in AFTERBURN_PLATFORMS else []),
                    *_units(units),
                    *_masked(masked),
                ]
            },
        }
    )
    # What is shared is fetched, from where it may be of any size.
    return document if hostname is None or platform_id not in AFTERBURN_PLATFORMS else _user_data(hostname, document)


def own_pointer(
    *,
    hostname: str,
    shared: Source,
    identity: Source,
    certificate_authorities: Sequence[str],
    files: Sequence[NodeFile],
) -> str:
    """A node's userdata where the rest of its first config, a `pointer`, is shared with others: its name, and files.

    Args:
        shared: the pointer. Ignition trusts the authorities that it names from then on, also while it fetches
            `identity` (internal/exec/config_fetcher.go, RenderConfig).
        certificate_authorities: whom to trust while `shared` is fetched.
    Raises IgnitionError where an argument cannot stand in a config, or when the result is too large for userdata.
    """
    merge = {"config": {"merge": [_resource(shared), _resource(identity)]}}
    own = [_hostname(hostname), *(_file(file.path, file.text, file.mode) for file in files)]
    document = _document({"ignition": {**merge, **_security(certificate_authorities)}, "storage": {"files": own}})
    return _user_data(hostname, document)


def with_files(document: str, files: Sequence[NodeFile]) -> str:
    """A config that we rendered, with more files."""
    tree = json.loads(document)
    tree["storage"]["files"] += [_file(file.path, file.text, file.mode) for file in files]
    return _document(tree)


def config(
    *,
    authorized_keys: Sequence[str],
    host_key: HostKey,
    files: Sequence[NodeFile],
    links: Sequence[NodeLink],
    units: Sequence[NodeUnit],
    merge: Sequence[Source] = (),
    masked: Sequence[str] = (),
    certificate_authorities: Sequence[str] = (),
) -> str:
    """A whole config of a live system; secret, because it has a host key.

    Args:
        certificate_authorities: `source` URLs of whom to trust while `merge` is fetched.
        merge: what else it has, which wins over this config where both say something.
        masked: units of that which must never start. Whether they are enabled there does not matter.
    """
    return _document(
        {
            "ignition": {
                **({"config": {"merge": [_resource(source) for source in merge]}} if merge else {}),
                **_security(certificate_authorities),
            },
            "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": list(authorized_keys)}]},
            "storage": {
                "files": [_file(file.path, file.text, file.mode) for file in (*host_key_files(host_key), *files)],
                "links": [{"path": link.path, "target": link.target, "overwrite": True} for link in links],
            },
            "systemd": {"units": [*_units(units), *_masked(masked)]},
        }
    )


def embedded(source: Source, *, certificate_authorities: Sequence[str]) -> str:
    """What a live system finds in its initramfs: where its config is, the config's hash, and whom to trust there.

    Nothing of it is secret but the place. Ignition takes the authorities from here before it fetches `source`
    (internal/exec/engine.go, fetchProviderConfig); in what it fetches they would come too late.
    """
    return _document(
        {"ignition": {"config": {"merge": [_resource(source)]}, **_security(certificate_authorities)}},
    )


def identity(key: HostKey) -> str:
    """A node's SSH host key, as a config to merge: secret, so never part of userdata."""
    files = [_file(file.path, file.text, file.mode) for file in host_key_files(key)]
    return _document({"ignition": {}, "storage": {"files": files}})


def host_key_files(key: HostKey) -> list[NodeFile]:
    """A system's SSH host key, where sshd looks for one of its type."""
    path = f"/etc/ssh/ssh_host_{key.type}_key"
    return [
        NodeFile(path=path, text=key.private_key, mode=0o600),
        NodeFile(path=f"{path}.pub", text=f"{key.public_key}\n", mode=0o644),
    ]


def certificate_authorities(installer_pointer: str) -> tuple[str, ...]:
    """The certificate authorities that an installer's pointer (master.ign, worker.ign) trusts, as `source` URLs."""
    try:
        tree: Any = json.loads(installer_pointer)
        authorities = tree["ignition"]["security"]["tls"]["certificateAuthorities"]
        return tuple(str(authority["source"]) for authority in authorities)
    except (ValueError, KeyError, TypeError):
        raise IgnitionError("the installer's pointer config names no certificate authority") from None


def data_url(text: str) -> str:
    """`text` as a data URL, base64."""
    return "data:;base64," + base64.b64encode(text.encode()).decode()


def data_of(url: str) -> str:
    """The text of a data URL; raises IgnitionError for another kind of URL."""
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:")):
        raise IgnitionError("an authority is given by a URL that is no data URL: it cannot be read here")
    return base64.b64decode(data).decode() if head.endswith(";base64") else unquote(data)


def _security(certificate_authorities: Sequence[str]) -> dict[str, Any]:
    """A part of the `ignition` section; nothing where nobody else is trusted than by the system."""
    if not certificate_authorities:
        return {}
    return {"security": {"tls": {"certificateAuthorities": [{"source": ca} for ca in certificate_authorities]}}}


def _resource(source: Source) -> dict[str, Any]:
    if not source.url.startswith(("https://", "data:")) and source.hash is None:
        raise IgnitionError("the Ignition config is not valid: only https: and data: sources need no hash")
    if source.hash is None:
        return {"source": source.url}
    if not re.fullmatch(r"sha512-[0-9a-f]{128}|sha256-[0-9a-f]{64}", source.hash):
        raise IgnitionError(
            "the Ignition config is not valid: a hash is neither 'sha512-' nor 'sha256-' and the digits of the hash"
        )
    return {"source": source.url, "verification": {"hash": source.hash}}


def _hostname(name: str) -> dict[str, Any]:
    return _file("/etc/hostname", f"{name}\n", 0o644)


def _file(path: str, text: str, mode: int) -> dict[str, Any]:
    url = data_url(text) if "\n" in text.rstrip("\n") else "data:," + quote(text)
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": url}}


def _units(units: Sequence[NodeUnit]) -> list[dict[str, Any]]:
    return [{"name": unit.name, "enabled": True, "contents": unit.text} for unit in units]


def _masked(names: Sequence[str]) -> list[dict[str, Any]]:
    return [{"name": name, "mask": True} for name in names]


def _afterburn_wanted() -> dict[str, Any]:
    """afterburn.service has no [Install] section: it runs only when something requires it (coreos/afterburn)."""
    return {
        "name": "metal-ipi-metadata.service",
        "enabled": True,
        "contents": (
            "[Unit]\n"
            "Description=Node attributes from the platform's metadata\n"
            "Requires=afterburn.service\n"
            "After=afterburn.service\n"
            "[Service]\n"
            "Type=oneshot\n"
            "RemainAfterExit=yes\n"
            "ExecStart=/usr/bin/test -s /run/metadata/afterburn\n"
            "[Install]\n"
            "WantedBy=multi-user.target\n"
        ),
    }


def _user_data(hostname: str, document: str) -> str:
    size = len(document.encode())
    if size > USERDATA_LIMIT:
        raise IgnitionError(f"the userdata of {hostname} has {size} bytes, more than {USERDATA_LIMIT}")
    return document


def _document(tree: dict[str, Any]) -> str:
    whole = {**tree, "ignition": {"version": SPEC, **tree["ignition"]}}
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
