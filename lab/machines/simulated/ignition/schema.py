"""Keys and types of the configuration specs 3.0 to 3.4.

A table per object: key → type. Types: "str", "int", "bool", another table's name, or a list of one of them ("[str]").
The number behind a key is the minor version that brought it. "any" is not looked into: simulated machines refuse to
apply it. Source: config/v3_*/types/schema.go of Ignition.
"""

from __future__ import annotations

import json
from typing import Any, cast

from lab.machines.simulated.ignition import IgnitionError

Config = dict[str, Any]
VERSIONS = ("3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0")

_NODE: dict[str, str] = {"path": "str", "overwrite": "bool", "user": "Owner", "group": "Owner"}
_TABLES: dict[str, dict[str, str]] = {
    "Config": {
        "ignition": "Ignition", "storage": "Storage", "systemd": "Systemd", "passwd": "Passwd",
        "kernelArguments": "KernelArguments 3",
    },
    "Ignition": {
        "version": "str", "config": "References", "timeouts": "Timeouts", "security": "Security", "proxy": "Proxy 1",
    },
    "References": {"merge": "[Resource]", "replace": "Resource"},
    "Resource": {"source": "str", "verification": "Verification", "compression": "str 1", "httpHeaders": "[Header] 1"},
    "Header": {"name": "str", "value": "str"},
    "Verification": {"hash": "str"},
    "Timeouts": {"httpResponseHeaders": "int", "httpTotal": "int"},
    "Security": {"tls": "Tls"},
    "Tls": {"certificateAuthorities": "[Resource]"},
    "Proxy": {"httpProxy": "str", "httpsProxy": "str", "noProxy": "[str]"},
    "KernelArguments": {"shouldExist": "[str]", "shouldNotExist": "[str]"},
    "Storage": {
        "directories": "[Directory]", "files": "[File]", "links": "[Link]", "disks": "[any]", "filesystems": "[any]",
        "raid": "[any]", "luks": "[any] 2",
    },
    "Owner": {"id": "int", "name": "str"},
    "Directory": {**_NODE, "mode": "int"},
    "File": {**_NODE, "mode": "int", "contents": "Resource", "append": "[Resource]"},
    "Link": {**_NODE, "target": "str", "hard": "bool"},
    "Systemd": {"units": "[Unit]"},
    "Unit": {"name": "str", "enabled": "bool", "mask": "bool", "contents": "str", "dropins": "[Dropin]"},
    "Dropin": {"name": "str", "contents": "str"},
    "Passwd": {"users": "[User]", "groups": "[Group]"},
    "User": {
        "name": "str", "passwordHash": "str", "sshAuthorizedKeys": "[str]", "uid": "int", "gecos": "str",
        "homeDir": "str", "noCreateHome": "bool", "primaryGroup": "str", "groups": "[str]", "noUserGroup": "bool",
        "noLogInit": "bool", "shell": "str", "system": "bool", "shouldExist": "bool 2",
    },
    "Group": {"name": "str", "gid": "int", "passwordHash": "str", "system": "bool", "shouldExist": "bool 2"},
}  # fmt: skip
_PLAIN: dict[str, type] = {"str": str, "int": int, "bool": bool}
_UNIT_SUFFIXES = (
    ".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope",
)  # fmt: skip


def parse(data: bytes) -> Config:
    """A validated configuration. Raises IgnitionError; texts are Ignition's own where it has one."""
    if not data.strip():
        raise IgnitionError("not a config (empty)")
    try:
        document = json.loads(data)
    except ValueError as error:
        raise IgnitionError(f"error at line 1 column 1: invalid character: config is not valid: {error}") from error
    if not isinstance(document, dict):
        raise IgnitionError("config is not valid: not an object")
    config = cast("Config", document)
    problems: list[str] = []
    minor = _version(config)
    _check(config, "Config", "$", minor, problems)
    if not problems:
        _check_rules(config, problems)
    if problems:
        raise IgnitionError(f"config is not valid: {'; '.join(problems)}")
    return config


def _version(config: Config) -> int:
    section = config.get("ignition")
    version = cast("Config", section).get("version") if isinstance(section, dict) else None
    if not isinstance(version, str):
        raise IgnitionError("invalid config version (couldn't parse)")
    if version not in VERSIONS:
        raise IgnitionError("unsupported config version")
    return VERSIONS.index(version)


def _check(value: Any, kind: str, path: str, minor: int, problems: list[str]) -> None:
    """Check a value against a type, recursively."""
    if kind.startswith("["):
        if not isinstance(value, list):
            problems.append(f"{path}: not a list")
            return
        for index, entry in enumerate(cast("list[Any]", value)):
            _check(entry, kind[1:-1], f"{path}.{index}", minor, problems)
    elif kind == "any":
        return
    elif kind in _PLAIN:
        wrong = not isinstance(value, _PLAIN[kind]) or (kind == "int" and isinstance(value, bool))
        if value is not None and wrong:
            problems.append(f"{path}: not of type {kind}")
    elif not isinstance(value, dict):
        problems.append(f"{path}: not an object")
    else:
        for key, entry in cast("Config", value).items():
            wanted, _, since = _TABLES[kind].get(key, "").partition(" ")
            if not wanted or int(since or 0) > minor:
                problems.append(f"{path}.{key}: Unused key {key}")
            elif entry is not None:
                _check(entry, wanted, f"{path}.{key}", minor, problems)


def _check_rules(config: Config, problems: list[str]) -> None:
    """Check rules that types cannot express, for the sections that simulated machines apply."""
    storage = config.get("storage") or {}
    seen: set[str] = set()
    for kind in ("files", "directories", "links"):
        for index, node in enumerate(storage.get(kind) or []):
            where, path = f"$.storage.{kind}.{index}", node.get("path") or ""
            if not path.startswith("/"):
                problems.append(f"{where}.path: {'path not absolute' if path else 'path not specified'}")
            if path in seen:
                problems.append(f"{where}.path: duplicate entry defined")
            seen.add(path)
            if not 0 <= (node.get("mode") or 0) <= 0o7777:
                problems.append(f"{where}.mode: illegal file mode")
            if kind == "files" and node.get("overwrite") and (node.get("contents") or {}).get("source") is None:
                problems.append(f"{where}: overwrite must be false if source is unspecified")
            if kind == "links" and not node.get("target"):
                problems.append(f"{where}.target: link target is required")
    for index, unit in enumerate((config.get("systemd") or {}).get("units") or []):
        if not str(unit.get("name", "")).endswith(_UNIT_SUFFIXES):
            problems.append(f"$.systemd.units.{index}.name: invalid systemd unit extension")
        for dropin in unit.get("dropins") or []:
            if not str(dropin.get("name", "")).endswith(".conf"):
                problems.append(f"$.systemd.units.{index}.dropins: invalid systemd drop-in extension")
    for index, entry in enumerate((config["ignition"].get("config") or {}).get("merge") or []):
        if not entry.get("source"):
            problems.append(f"$.ignition.config.merge.{index}.source: source is required")
