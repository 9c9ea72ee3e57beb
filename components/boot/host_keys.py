"""SSH host keys that are known before a machine exists.

Every node's key is derived from one secret of the cluster and the node's name (HKDF, RFC 5869), so it can be handed to
the machine and pinned by whoever connects, without one more resource per node and without trust on first use.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from dataclasses import dataclass

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_TYPE = b"ssh-ed25519"
_SEED_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class HostKey:
    """An ed25519 SSH host key."""

    private_key: str
    """OpenSSH PEM; a secret."""
    public_key: str
    """`ssh-ed25519 AAAA...`, without comment."""


def host_key(seed: str, node: str) -> HostKey:
    """The host key of `node` (its full name); `seed` is 32 random bytes, base64. The same input gives the same text.

    Raises ValueError for any other seed: keys derived from less could be guessed.
    """
    secret = _derive(seed, f"metal-ipi ssh host key {node}")
    private = Ed25519PrivateKey.from_private_bytes(secret)
    public = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    blob = _string(_TYPE) + _string(public)
    return HostKey(
        private_key=_openssh_private_key(secret, public, blob),
        public_key=f"ssh-ed25519 {base64.b64encode(blob).decode()}",
    )


def unguessable(seed: str, name: str) -> str:
    """A word for `name` that only who has the seed can tell: 43 letters, digits, `-` and `_`. Errors as `host_key`."""
    return base64.urlsafe_b64encode(_derive(seed, f"metal-ipi name {name}")).decode().rstrip("=")


def _derive(seed: str, purpose: str) -> bytes:
    random = base64.b64decode(seed, validate=True)
    if len(random) != _SEED_BYTES:
        raise ValueError(f"the seed of host keys has {len(random)} bytes instead of {_SEED_BYTES}")
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=purpose.encode()).derive(random)


def _openssh_private_key(secret: bytes, public: bytes, blob: bytes) -> str:
    """The PEM file (openssh/PROTOCOL.key). The usual writers put a random number in; ours must not change by itself."""
    check = hashlib.sha256(secret).digest()[:4]
    private = check + check + blob + _string(secret + public) + _string(b"")
    private += bytes(range(1, 8 - len(private) % 8 + 1)) if len(private) % 8 else b""
    none = _string(b"none")
    body = b"openssh-key-v1\0" + none + none + _string(b"") + struct.pack(">I", 1) + _string(blob) + _string(private)
    text = base64.b64encode(body).decode()
    lines = "\n".join(text[start : start + 70] for start in range(0, len(text), 70))
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n"


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
