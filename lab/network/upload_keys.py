"""The SSH keys of the upload server: its host key, and the key of its user."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from lab.layout import Layout, write_private

USER = "upload"
HOST = "host_ed25519"
CLIENT = "client_ed25519"


def ensure(layout: Layout, name: str) -> tuple[str, str]:
    """The key `name` of this lab, made when it is asked for first: (private OpenSSH PEM, public one-line form)."""
    private, public = layout.ssh / name, layout.ssh / f"{name}.pub"
    if not public.exists():
        key = ed25519.Ed25519PrivateKey.generate()
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        line = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        write_private(private, pem)
        write_private(public, line + b"\n")
    return private.read_text(), public.read_text().strip()
