"""Ignition configs of spec 3.3.0 (coreos/ignition docs/configuration-v3_3.md): pointers for userdata, configs of live
systems, and the identity of a node.

Everyone who reaches the metadata service can read userdata, so it contains pointers and no secrets. What a pointer
refers to is pinned by hash, or served by the cluster's machine config server under the installer's certificate
authority.
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
# Metal's limit for userdata; our userdata is a few KiB (openshift/enhancements PR 436).
USERDATA_LIMIT = 64 * 1024
# Platform ids, among those we use, whose metadata Afterburn can read (coreos/afterburn, docs/platforms.md).
AFTERBURN_PLATFORMS = ("packet",)


class IgnitionError(ValueError):
    """The config breaks the Ignition specification. The message does not show the config's content."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The place of a config to merge."""

    url: str
    """An https or data URL. An http URL only for a config that is not secret, and with its hash."""
    hash: str | None = None
    """`sha512-` and 128 hexadecimal digits. None only for configs that the machine config server renders itself."""


@dataclass(frozen=True, kw_only=True)
class NodeFile:
    """A file of a node, with its content."""

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
    """A systemd unit that keeps a bash script running once the network is online, and restarts it when it ends.

    Args:
        before: a unit that must start only after this one.
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
    """A node's first config (its userdata, on platforms with userdata): its name, SSH keys, and what to merge.

    Args:
        hostname: the node's full name. None for a config that many nodes share; `own_pointer` then adds the name.
        platform_id: Ignition's platform id. A unit starts Afterburn if Afterburn knows the platform.
        merge: configs to fetch and merge, in order. Later ones override earlier ones, and all override the pointer
            itself (seen with Ignition 2.14).
        certificate_authorities: `source` URLs of certificate authorities, as in the installer's own pointers.
        authorized_keys: SSH public keys for user `core`.
        files, units: further files and units; everyone who reaches the metadata service can read them.
        masked: units of the merged configs that must never start, even if a merged config enables them.

    Raises IgnitionError if an argument is not valid in a config, or if the result is too large for userdata.
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
    # A shared config is fetched from a server, so the limit for userdata does not apply to it.
    return document if hostname is None or platform_id not in AFTERBURN_PLATFORMS else _user_data(hostname, document)


def own_pointer(
    *,
    hostname: str,
    shared: Source,
    identity: Source,
    certificate_authorities: Sequence[str],
    files: Sequence[NodeFile],
) -> str:
    """A node's userdata, if the rest of its first config (a `pointer`) is shared with other nodes: its name and its
    files.

    Args:
        shared: the pointer. After Ignition has read it, it also trusts the authorities named in it, already when it
            fetches `identity` (internal/exec/config_fetcher.go, RenderConfig).
        certificate_authorities: the authorities to trust while `shared` is fetched.

    Raises IgnitionError if an argument is not valid in a config, or if the result is too large for userdata.
    """
    merge = {"config": {"merge": [_resource(shared), _resource(identity)]}}
    own = [_hostname(hostname), *(_file(file.path, file.text, file.mode) for file in files)]
    document = _document({"ignition": {**merge, **_security(certificate_authorities)}, "storage": {"files": own}})
    return _user_data(hostname, document)


def with_files(document: str, files: Sequence[NodeFile]) -> str:
    """Add files to a config that this module rendered."""
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
    """The complete config of a live system. It is secret, because it contains a host key.

    Args:
        certificate_authorities: `source` URLs of authorities to trust while `merge` is fetched.
        merge: further configs; they override this config.
        masked: units of the merged configs that must never start, even if a merged config enables them.
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
    """The config in a live system's initramfs: the URL of the real config, its hash, and the authorities to trust.

    Only the URL is secret. Ignition reads the authorities from this config before it fetches `source`
    (internal/exec/engine.go, fetchProviderConfig); inside the fetched config they would come too late.
    """
    return _document(
        {"ignition": {"config": {"merge": [_resource(source)]}, **_security(certificate_authorities)}},
    )


def identity(key: HostKey) -> str:
    """A config to merge with a node's SSH host key. It is secret, so it is never part of userdata."""
    files = [_file(file.path, file.text, file.mode) for file in host_key_files(key)]
    return _document({"ignition": {}, "storage": {"files": files}})


def host_key_files(key: HostKey) -> list[NodeFile]:
    """A system's SSH host key, at the path where sshd looks for a key of its type."""
    path = f"/etc/ssh/ssh_host_{key.type}_key"
    return [
        NodeFile(path=path, text=key.private_key, mode=0o600),
        NodeFile(path=f"{path}.pub", text=f"{key.public_key}\n", mode=0o644),
    ]


def certificate_authorities(installer_pointer: str) -> tuple[str, ...]:
    """The certificate authorities in an installer's pointer (master.ign, worker.ign), as `source` URLs. Raises
    IgnitionError."""
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
    """The text of a data URL. Raises IgnitionError for another kind of URL."""
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:")):
        raise IgnitionError("an authority is given by a URL that is not a data URL, which cannot be read here")
    return base64.b64decode(data).decode() if head.endswith(";base64") else unquote(data)


def _security(certificate_authorities: Sequence[str]) -> dict[str, Any]:
    """The `security` part of the `ignition` section; empty if only the system's own authorities are trusted."""
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
    """A unit that starts Afterburn: afterburn.service has no [Install] section, so something must require it
    (coreos/afterburn)."""
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
