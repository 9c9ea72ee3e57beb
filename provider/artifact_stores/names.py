"""What directories and files of an artifact host are known by."""

from __future__ import annotations

import base64
import hashlib
import hmac


def unguessable(secret: str, of: str) -> str:
    """A directory's name, 43 characters of 256 bits: as good as `secrets.token_urlsafe(32)`, but found again from the
    same secret and text."""
    digest = hmac.new(secret.encode(), of.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def sha512(content: bytes) -> str:
    """A file's hash as Ignition has it, `sha512-<hex>`."""
    return f"sha512-{hashlib.sha512(content).hexdigest()}"
