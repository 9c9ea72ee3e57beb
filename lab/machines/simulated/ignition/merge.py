"""How Ignition merges a child configuration into its parent: the child wins, lists are joined by key."""

from __future__ import annotations

from typing import Any, cast

Config = dict[str, Any]

_KEYS = {
    "files": "path",
    "directories": "path",
    "links": "path",
    "units": "name",
    "dropins": "name",
    "users": "name",
    "groups": "name",
    "disks": "device",
    "filesystems": "path",
    "raid": "name",
    "luks": "name",
    "certificateAuthorities": "source",
    "httpHeaders": "name",
}
_NODES = ("files", "directories", "links")


def merge(parent: Config, child: Config) -> Config:
    """A new configuration; neither argument changes."""
    merged = _objects(parent, child)
    storage, newer = merged.get("storage"), child.get("storage")
    if storage and newer:
        _settle_paths(storage, newer)
    return merged


def _objects(parent: Config, child: Config) -> Config:
    result = dict(parent)
    for key, value in child.items():
        if value is None:
            continue
        mine = result.get(key)
        if isinstance(value, dict) and isinstance(mine, dict):
            result[key] = _objects(cast("Config", mine), cast("Config", value))
        elif isinstance(value, list) and isinstance(mine, list):
            result[key] = _lists(key, cast("list[Any]", mine), cast("list[Any]", value))
        else:
            result[key] = value
    return result


def _lists(name: str, parent: list[Any], child: list[Any]) -> list[Any]:
    """Objects with a key merge with their namesake, in its place; the rest is appended, each value once."""
    key = _KEYS.get(name)
    result = list(parent)
    for entry in child:
        place = None
        if key is not None and isinstance(entry, dict):
            wanted = cast("Config", entry).get(key)
            place = next((at for at, mine in enumerate(result) if mine.get(key) == wanted), None)
        elif not isinstance(entry, dict) and entry in result:
            continue
        if place is None:
            result.append(entry)
        else:
            result[place] = _objects(result[place], entry)
    return result


def _settle_paths(storage: Config, newer: Config) -> None:
    """A path has one kind: a child's file takes the place of a parent's link, and so on."""
    for kind in _NODES:
        claimed = {node["path"] for node in newer.get(kind) or []}
        for other in _NODES:
            if other != kind and storage.get(other):
                storage[other] = [node for node in storage[other] if node["path"] not in claimed]
