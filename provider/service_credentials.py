"""ServiceCredentials: a certificate authority and the accounts of a service that runs on a hub.

Life cycle: create makes all of it; an update with a raised `rotation` makes new passwords; the authority stays. read
and delete touch nothing outside the state.

Killed at any moment: nothing exists outside the state, so the next run creates new values, and the lost ones were never
used.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values, simple_changes
from metal_ipi.provider.resources.service_credentials import ServiceCredentialsArgs
from metal_ipi.provider.values import UNKNOWN, Secret

_CA_DAYS = 3650
_CLOCK_SKEW = timedelta(hours=1)
_SECRET = ("caPrivateKey", "accountsMade")
_PASSWORD_BYTES = 24
_BCRYPT_COST = 4
"""The lowest cost. Ironic hashes the password at each request and at each call between its parts, which takes 0.6 s of
CPU at the usual cost of 12. A high cost protects passwords that people choose; these are random."""


class ServiceCredentials(ResourceType):
    """The authority and the accounts of a service."""

    token = "metal-ipi:index:ServiceCredentials"  # noqa: S105 - a type token
    inputs = ServiceCredentialsArgs

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        before, after = old.get("rotation") or 1, new.get("rotation") or 1
        if isinstance(after, (int, float)) and after < before:
            raise InvalidInputs(
                f"rotation is {before:g}, and is now to be {after:g}: accounts of an earlier rotation do not come "
                f"back. Put it back to {before:g}, or raise it to {before + 1:g} for new passwords"
            )
        found = simple_changes(old, new, ("accounts", "rotation"))
        return found if old.get("caPrivateKey") else Changes(changes={**found.changes, "caPrivateKey": "update"})

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        if old is not None and not self.diff(context, old, new).changes:
            return {"ca": old["ca"], **{name: Secret(old[name]) for name in _SECRET}}
        ca, key = (UNKNOWN, UNKNOWN) if old is None else (old["ca"], _authoritys_key(old))
        return {"ca": ca, "caPrivateKey": Secret(key), "accountsMade": Secret(UNKNOWN)}

    async def create(self, context: Context, inputs: Values) -> Made:
        given = ServiceCredentialsArgs.read(inputs)
        return Made(id=secrets.token_hex(8), outputs=_made(given, *new_authority(), {}))

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        given = ServiceCredentialsArgs.read(new)
        return _made(given, old["ca"], _authoritys_key(old), old["accountsMade"])


def _authoritys_key(old: Values) -> Any:
    """The authority's key from a state. Older states had it in `certificatesMade`."""
    return old.get("caPrivateKey") or old["certificatesMade"]["authority"]["privateKey"]


def _made(given: ServiceCredentialsArgs, ca: str, key: str, accounts: Mapping[str, Any]) -> Values:
    return {
        "ca": ca,
        "caPrivateKey": Secret(key),
        "accountsMade": Secret({name: _account(name, given.rotation, accounts.get(name)) for name in given.accounts}),
    }


def _account(name: str, rotation: int, before: Mapping[str, str] | None) -> dict[str, str]:
    import bcrypt

    username = f"{name}-{rotation}"
    if before is not None and before["username"] == username:
        return dict(before)
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    line = f"{username}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(_BCRYPT_COST)).decode()}"
    # The first line of the previous file is the previous account's own: with it, that account stays valid for one
    # rotation.
    lines = [line, *(before["htpasswd"].splitlines()[:1] if before else [])]
    return {
        "username": username,
        "password": password,
        "htpasswd": "\n".join(lines) + "\n",
        "previousUsername": before["username"] if before else "",
        "previousPassword": before["password"] if before else "",
    }


def new_authority() -> tuple[str, str]:
    """The certificate and the key of a new authority (ECDSA on P-256, which FIPS allows), in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"metal-ipi {secrets.token_hex(4)}")])
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _CLOCK_SKEW,
        not_valid_after=now + timedelta(days=_CA_DAYS),
    )
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        key_encipherment=False,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = builder.add_extension(identifier, critical=False).sign(key, hashes.SHA256())
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(pem, form, serialization.NoEncryption())
    return certificate.public_bytes(pem).decode(), private.decode()
