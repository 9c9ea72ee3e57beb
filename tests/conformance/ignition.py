"""Ignition configs: what is in one, and what a machine has that merges several."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

Config = Mapping[str, Any]
Fetch = Callable[[str], str]
"""Answers the config at a URL."""


def data(url: str, compression: str | None = None) -> bytes:
    """What a data URL holds."""
    head, comma, body = url.partition(",")
    assert head.startswith("data:") and comma, f"no data URL: {url[:60]}"
    found = base64.b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
    return gzip.decompress(found) if compression == "gzip" else found


def files(config: Config) -> dict[str, bytes]:
    """The files of a config, by path; parts that are appended come after one another."""
    found: dict[str, bytes] = {}
    for entry in config.get("storage", {}).get("files", ()):
        parts = [part for part in (entry.get("contents"), *(entry.get("append") or ())) if part and part.get("source")]
        found[entry["path"]] = b"".join(data(part["source"], part.get("compression")) for part in parts)
    return found


def units(config: Config) -> dict[str, Any]:
    """The units of a config, by name."""
    return {unit["name"]: unit for unit in config.get("systemd", {}).get("units", ())}


def parts(config: Config) -> set[str]:
    """All that a config puts on a machine, by name: files, folders, links, units, drop-ins of units, users."""
    storage = config.get("storage", {})
    found = {entry["path"] for kind in ("files", "directories", "links") for entry in storage.get(kind) or ()}
    for name, unit in units(config).items():
        found |= {name, *(f"{name}.d/{dropin['name']}" for dropin in unit.get("dropins") or ())}
    return found | {f"user {user['name']}" for user in config.get("passwd", {}).get("users") or ()}


def chain(document: str, fetch: Fetch) -> list[str]:
    """A config and what it merges, in the order in which Ignition merges: later ones win (exec/engine.go)."""
    found = [document]
    for source in json.loads(document)["ignition"].get("config", {}).get("merge", ()):
        url = source["source"]
        found += chain(data(url).decode() if url.startswith("data:") else fetch(url), fetch)
    return found


def merged(program: Path, documents: Sequence[str], directory: Path) -> tuple[Config, str]:
    """What Ignition makes of configs, later ones over earlier ones, and all that it reports of them."""
    paths = [directory / f"{number}.ign" for number in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(document)
    done = subprocess.run([str(program), *map(str, paths)], capture_output=True, text=True, check=False)
    return json.loads(done.stdout), done.stderr
