"""Names and hashes of directories and files on an artifact host."""

from __future__ import annotations

import base64
import hashlib
import hmac


def unguessable(secret: str, of: str) -> str:
    """The name of a directory: 43 characters with 256 bits. As hard to guess as `secrets.token_urlsafe(32)`, but the
    same for the same secret and text."""
    digest = hmac.new(secret.encode(), of.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def sha512(content: bytes) -> str:
    """A file's hash in Ignition's format, `sha512-<hex>`."""
    return f"sha512-{hashlib.sha512(content).hexdigest()}"
