"""Preflight check: can files be uploaded to the artifact host, and does its web server serve them?

The check writes a small file, reads its hash back, fetches it by its URL, and removes it.
"""

from __future__ import annotations

import secrets

from metal_ipi.provider.artifact_stores import open_store, persistently
from metal_ipi.provider.artifact_stores.names import sha512
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.preflight import http
from metal_ipi.provider.preflight.findings import Finding, error, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "artifact-host"
_FILE = "probe"
_PATIENCE = 10
"""Seconds that an operation is retried while it fails with an error that may be transient."""


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding: the first problem, or that all is well."""
    settings = subject.settings.artifacts
    if settings is None:
        return []
    store, directory = open_store(settings), f"preflight-{secrets.token_hex(16)}"
    content = secrets.token_hex(32).encode()
    url = f"{settings.base_url.rstrip('/')}/{directory}/{_FILE}"
    try:
        await persistently(lambda: store.put(directory, {_FILE: content}), timeout=_PATIENCE)
        try:
            found = await store.hashes(directory, [_FILE])
            async with http.opened(subject) as client:
                fetched = await http.content_of(client, url, subject)
        finally:
            await persistently(lambda: store.delete(directory, [_FILE]), timeout=_PATIENCE)
    except RemoteError as failure:
        return [
            error(
                str(failure),
                "correct artifacts.*, or the rights on the host; its web server must serve files by name, and have a "
                "certificate that is trusted everywhere or signed by artifacts.caBundle",
            )
        ]
    if found.get(_FILE) != sha512(content):
        return [error("the file there is not the one that was uploaded", "find out who else writes there")]
    if fetched != content:
        return [
            error(f"{url} is not the file that was uploaded there", "correct artifacts.baseUrl or artifacts.directory")
        ]
    text = f"accepts files, and serves them at {settings.base_url}"
    if not settings.boot_base_url.startswith("https:"):
        text += "; firmware fetches its boot files over http, without verification (docs/boot-server.md)"
    return [ok(text)]
