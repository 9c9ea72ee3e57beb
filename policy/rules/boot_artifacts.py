"""Rule: boot files come from safe sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from .base import Given, Resource, Rule, listed, mapping, strings
from .machines import PREFLIGHT

_HASH = re.compile(r"[0-9a-f]{64}")
_PLACEHOLDER = "rehearsal.invalid"
"""Host name in the URLs of a rehearsal, which does not read the stream from the network."""


def _check(resource: Resource, given: Given) -> Iterator[str]:
    if resource.type != PREFLIGHT:
        return
    plain = strings(RULE.parameter(given, "httpHosts"))
    release = resource.text("release")
    for file in map(mapping, listed(resource.properties.get("boot"))):
        name, url, digest = file.get("name"), file.get("url"), file.get("sha256")
        if not isinstance(url, str):
            continue
        parts = urlsplit(url)
        if parts.hostname == _PLACEHOLDER:
            continue
        if parts.scheme != "https" and parts.hostname not in plain:
            yield (
                f"{name} is fetched from {url}, which is not verified: use an https mirror in the stream"
                f" (`metal-ipi:boot.streamUrl`), or name {parts.hostname} in the policy configuration"
                " (boot-artifacts.httpHosts) if the network is yours"
            )
        if not isinstance(digest, str) or not _HASH.fullmatch(digest):
            yield f"{name} has no SHA-256: use the stream metadata of the release, which has one for each file"
        if release and release not in url:
            yield (
                f"{name} ({url}) is not of release {release}, which the stream names: use kernel, initramfs and "
                "rootfs of one release"
            )


RULE = Rule(
    name="boot-artifacts",
    description="Boot artifacts are fetched over https, have a hash, and are of the stream's release.",
    parameters={
        "httpHosts": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "Hosts in networks of your own that may serve them over http; hashes are checked anyway.",
        }
    },
    resource=_check,
)
