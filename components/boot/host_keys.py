"""SSH host keys that are known before a machine exists.

Each node's key is derived from one secret of the cluster and the node's name (HKDF, RFC 5869). So the key can be given
to the machine and pinned by SSH clients, without one more resource per node and without trust on first use.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from dataclasses import dataclass
from typing import Literal

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KeyType = Literal["ed25519", "ecdsa"]
"""Type of our SSH keys: ed25519, or ECDSA on the curve P-256 where FIPS mode does not allow ed25519."""
_SEED_BYTES = 32
_CURVE, _P256 = b"nistp256", b"ecdsa-sha2-nistp256"
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
# 64 bits more than the order has, so that the remainder is close to uniform (FIPS 186-5, A.2.1).
_P256_BYTES = 40


@dataclass(frozen=True, kw_only=True)
class HostKey:
    """An SSH host key."""

    type: KeyType
    """The type names sshd's file: /etc/ssh/ssh_host_<type>_key."""
    private_key: str
    """OpenSSH PEM; a secret."""
    public_key: str
    """`ssh-ed25519 AAAA...` or `ecdsa-sha2-nistp256 AAAA...`, without comment."""


def host_key(seed: str, node: str, key_type: KeyType = "ed25519") -> HostKey:
    """Derive the host key of `node` (its full name). `seed` is 32 random bytes in base64. Deterministic.

    Raises ValueError for a seed of another length, because keys derived from a shorter seed could be guessed.
    """
    return _ed25519(seed, node) if key_type == "ed25519" else _ecdsa(seed, node)


def _ed25519(seed: str, node: str) -> HostKey:
    secret = _derive(seed, f"metal-ipi ssh host key {node}")
    private = Ed25519PrivateKey.from_private_bytes(secret)
    public = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    blob = _string(b"ssh-ed25519") + _string(public)
    return _host_key("ed25519", "ssh-ed25519", blob, secret, _string(secret + public))


def _ecdsa(seed: str, node: str) -> HostKey:
    random = _derive(seed, f"metal-ipi ssh host key {node} {_P256.decode()}", _P256_BYTES)
    number = int.from_bytes(random, "big") % (_P256_ORDER - 1) + 1
    point = ec.derive_private_key(number, ec.SECP256R1()).public_key()
    public = point.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    blob = _string(_P256) + _string(_CURVE) + _string(public)
    return _host_key("ecdsa", _P256.decode(), blob, random, _mpint(number))


def unguessable(seed: str, name: str) -> str:
    """A word for `name` that only who has the seed can tell: 43 letters, digits, `-` and `_`. Errors as `host_key`."""
    return base64.urlsafe_b64encode(_derive(seed, f"metal-ipi name {name}")).decode().rstrip("=")


def _derive(seed: str, purpose: str, length: int = 32) -> bytes:
    random = base64.b64decode(seed, validate=True)
    if len(random) != _SEED_BYTES:
        raise ValueError(f"the seed of host keys has {len(random)} bytes instead of {_SEED_BYTES}")
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=None, info=purpose.encode()).derive(random)


def _host_key(key_type: KeyType, name: str, blob: bytes, secret: bytes, private: bytes) -> HostKey:
    return HostKey(
        type=key_type,
        private_key=_openssh_private_key(secret, private, blob),
        public_key=f"{name} {base64.b64encode(blob).decode()}",
    )


def _openssh_private_key(secret: bytes, secret_fields: bytes, blob: bytes) -> str:
    """The PEM file (openssh/PROTOCOL.key). Other writers put a random check number in; ours is a hash, so the text
    never changes."""
    check = hashlib.sha256(secret).digest()[:4]
    private = check + check + blob + secret_fields + _string(b"")
    private += bytes(range(1, 8 - len(private) % 8 + 1)) if len(private) % 8 else b""
    none = _string(b"none")
    body = b"openssh-key-v1\0" + none + none + _string(b"") + struct.pack(">I", 1) + _string(blob) + _string(private)
    text = base64.b64encode(body).decode()
    lines = "\n".join(text[start : start + 70] for start in range(0, len(text), 70))
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n"


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _mpint(number: int) -> bytes:
    """Encode a positive number as mpint (RFC 4251, section 5). A leading zero byte keeps the sign bit clear."""
    return _string(number.to_bytes(number.bit_length() // 8 + 1, "big"))
