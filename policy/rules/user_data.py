"""Rule: what machines get as userdata, which everybody who reaches the metadata service can read."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

from .base import Given, Resource, Rule, mapping, walk
from .machines import ordered

_SECRETS = {
    "a private key": re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a pull secret": re.compile(rb'"auths"\s*:\s*\{'),
    "a kubeconfig with a key": re.compile(rb"client-key-data|kind:\s*Config\b[\s\S]*\btoken:\s*\S"),
    "a password": re.compile(rb'"passwordHash"|\bpassword["\']?\s*[:=]\s*["\']?[^\s"\'{}]{4,}', re.IGNORECASE),
    "a bearer token": re.compile(
        rb"\bAuthorization[\"']?\s*[:=,]\s*[\"']?(value[\"']?\s*:\s*[\"'])?(Bearer|Basic)\s+\S+"
    ),
}


def _check(resource: Resource, given: Given) -> Iterator[str]:
    most = int(RULE.parameter(given, "maxBytes"))
    for machine in ordered(resource):
        data = machine.user_data
        if isinstance(data, str) and data:
            yield from (f"{machine.what}: {problem}" for problem in problems(data, most))


def problems(data: str, most: int) -> list[str]:
    """The problems of a machine's userdata. The messages never repeat the data."""
    size = len(data.encode())
    found: list[str] = []
    if size > most:
        found.append(
            f"its userdata has {size} bytes, and the limit is {most}: upload its content, and refer to it with a hash "
            "(ignition.config.merge)"
        )
    config = _ignition(data)
    if config is None:
        found.append(
            "its userdata is not plain Ignition of version 3 (Ignition takes neither gzip, base64 nor multipart from"
            " the metadata service): give the JSON document itself"
        )
    texts = [data.encode(), *(_decoded(value) for _, name, value in walk(config) if name == "source")]
    found += [
        f"its userdata contains {what}, which anybody who reaches the metadata service can read: upload it to a "
        "secret URL and"
        " merge it with its hash"
        for what, pattern in _SECRETS.items()
        if any(pattern.search(text) for text in texts)
    ]
    return found


def _ignition(data: str) -> dict[str, Any] | None:
    try:
        config = mapping(json.loads(data))
    except ValueError:
        return None
    return config if str(mapping(config.get("ignition")).get("version", "")).startswith("3.") else None


def _decoded(url: Any) -> bytes:
    """The content of a data URL, decompressed if necessary; empty for any other URL."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return b""
    head, _, body = url.partition(",")
    try:
        raw = (
            base64.b64decode(body, validate=False) if head.endswith(";base64") else urllib.parse.unquote_to_bytes(body)
        )
        return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    except (binascii.Error, OSError, EOFError):
        return body.encode()


RULE = Rule(
    name="plain-user-data",
    description="Userdata is plain Ignition within the size limit, and contains no secrets.",
    parameters={
        "maxBytes": {"type": "integer", "default": 65536, "description": "The largest userdata that is allowed."},
    },
    resource=_check,
)
