"""ServiceCredentials: an authority, certificates and accounts of a service that runs on a hub.

Life cycle: create makes all of it; an update makes those certificates anew that are near their end or are to be good
for other names, and with a raised `rotation` all passwords; the authority and what does not change stay as they are.
read and delete touch nothing outside the state.
Killed at any moment: nothing outside the state exists, so the next run makes new ones that nobody has seen before.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.resource import Changes, Context, Kind, Made, ResourceType, Values, simple_changes
from metal_ipi.provider.resources.service_credentials import ServiceCredentialsArgs
from metal_ipi.provider.values import UNKNOWN, Secret

_CA_DAYS = 3650
_CLOCK_SKEW = timedelta(hours=1)
_OUTPUTS = ("ca", "certificatesMade", "accountsMade", "renewal")
_PASSWORD_BYTES = 24
_BCRYPT_COST = 4
"""The least. Ironic hashes what it is told at each request and each call between its parts: 0.6 s of a processor at the
usual cost of 12. That is meant to slow down who guesses at words of people, and nobody guesses at these."""


class ServiceCredentials(ResourceType):
    """Certificates and accounts of a service."""

    token = "metal-ipi:index:ServiceCredentials"  # noqa: S105 - a type token
    inputs = ServiceCredentialsArgs

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        before, after = old.get("rotation") or 1, new.get("rotation") or 1
        if isinstance(after, (int, float)) and after < before:
            raise InvalidInputs(
                f"rotation is {before:g}, and is now to be {after:g}: accounts of an earlier rotation do not come "
                f"back. Put it back to {before:g}, or raise it to {before + 1:g} for new passwords"
            )
        found = simple_changes(old, new, ("certificates", "accounts", "rotation", "validDays", "renewBeforeDays"))
        changes: dict[str, Kind] = dict(found.changes)
        if _is_due(old):
            changes["renewal"] = "update"
        return Changes(changes=changes)

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        if old is not None and not self.diff(context, old, new).changes:
            return {name: Secret(old[name]) if name.endswith("Made") else old[name] for name in _OUTPUTS}
        ca = UNKNOWN if old is None else old["ca"]
        return {"ca": ca, "certificatesMade": Secret(UNKNOWN), "accountsMade": Secret(UNKNOWN), "renewal": UNKNOWN}

    async def create(self, context: Context, inputs: Values) -> Made:
        given = ServiceCredentialsArgs.read(inputs)
        authority = _Authority.new()
        return Made(id=secrets.token_hex(8), outputs=_made(given, authority, {}, {}))

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        given, before = ServiceCredentialsArgs.read(new), ServiceCredentialsArgs.of_state(old)
        certificates: Mapping[str, Any] = old["certificatesMade"]
        own = certificates[_AUTHORITY]
        authority = _Authority.of(own["certificate"], own["privateKey"])
        same = before.valid_days == given.valid_days and not _is_due(old)
        kept = {
            name: made
            for name, made in certificates.items()
            if same and name in given.certificates and before.certificates.get(name) == given.certificates[name]
        }
        return _made(given, authority, kept, old["accountsMade"])


_AUTHORITY = "authority"
"""Under this name the authority's own key stands among the certificates."""


def _is_due(state: Values) -> bool:
    """Whether the certificates of a state are near their end."""
    renewal = state.get("renewal")
    return isinstance(renewal, str) and datetime.fromisoformat(renewal) <= datetime.now(UTC)


def _made(
    given: ServiceCredentialsArgs, authority: _Authority, kept: Mapping[str, Any], accounts: Mapping[str, Any]
) -> Values:
    certificates = {
        name: kept.get(name) or authority.issue(subjects, given.valid_days)
        for name, subjects in given.certificates.items()
    }
    certificates[_AUTHORITY] = {"certificate": authority.pem, "privateKey": authority.key_pem}
    ends = min(_end(each["certificate"]) for name, each in certificates.items() if name != _AUTHORITY)
    return {
        "ca": authority.pem,
        "certificatesMade": Secret(certificates),
        "accountsMade": Secret({name: _account(name, given.rotation, accounts.get(name)) for name in given.accounts}),
        "renewal": (ends - timedelta(days=given.renew_before_days)).isoformat(timespec="seconds"),
    }


def _account(name: str, rotation: int, before: Mapping[str, str] | None) -> dict[str, str]:
    import bcrypt

    username = f"{name}-{rotation}"
    if before is not None and before["username"] == username:
        return dict(before)
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    line = f"{username}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(_BCRYPT_COST)).decode()}"
    # The first line of the one before is its own: with it the account stays known for one rotation.
    lines = [line, *(before["htpasswd"].splitlines()[:1] if before else [])]
    return {
        "username": username,
        "password": password,
        "htpasswd": "\n".join(lines) + "\n",
        "previousUsername": before["username"] if before else "",
        "previousPassword": before["password"] if before else "",
    }


def _end(certificate: str) -> datetime:
    from cryptography import x509

    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc


class _Authority:
    """Who signs certificates (ECDSA on P-256, which FIPS takes)."""

    def __init__(self, certificate: Any, key: Any) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def new(cls) -> _Authority:
        """A new one."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(f"metal-ipi {secrets.token_hex(4)}")
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = _builder(name, name, key.public_key(), _CA_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs=True), critical=True).add_extension(identifier, critical=False)
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def of(cls, certificate: str, private_key: str) -> _Authority:
        """One that was made before."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        return cls(
            x509.load_pem_x509_certificate(certificate.encode()), load_pem_private_key(private_key.encode(), None)
        )

    @property
    def pem(self) -> str:
        """Its certificate."""
        from cryptography.hazmat.primitives.serialization import Encoding

        return self._certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """Its private key."""
        return _key_pem(self._key)

    def issue(self, subjects: Sequence[str], days: int) -> dict[str, str]:
        """A certificate for servers and clients, and its key, both PEM."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(subjects[0][:64]), self._certificate.subject, key.public_key(), days)
        for extension, critical in (
            (x509.SubjectAlternativeName([_general_name(each) for each in subjects]), False),
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (_usage(signs=False), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False),
            (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False),
        ):
            builder = builder.add_extension(extension, critical=critical)
        certificate = builder.sign(self._key, hashes.SHA256())
        return {"certificate": certificate.public_bytes(Encoding.PEM).decode(), "privateKey": _key_pem(key)}


def _name(common: str) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(subject: Any, issuer: Any, public_key: Any, days: int) -> Any:
    from cryptography import x509

    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=public_key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _CLOCK_SKEW,
        not_valid_after=now + timedelta(days=days),
    )


def _usage(*, signs: bool) -> Any:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        key_encipherment=False,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(subject: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(subject))
    except ValueError:
        return x509.DNSName(subject)


def _key_pem(key: Any) -> str:
    from cryptography.hazmat.primitives import serialization as form

    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()
