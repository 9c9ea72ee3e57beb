"""The lab's certificate authority and the certificate of its servers."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Mapping, Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lab.layout import Layout, write_private
from lab.network import plan

_EARLY = datetime.timedelta(days=1)  # clocks of emulated machines are not always right
_LIFETIME = datetime.timedelta(days=3650)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _builder(
    subject: str, issuer: x509.Name | None, key: ec.EllipticCurvePublicKey, *, shift: datetime.timedelta | None = None
) -> x509.CertificateBuilder:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    now = datetime.datetime.now(datetime.timezone.utc) + (shift or datetime.timedelta())
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer or name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _server(
    builder: x509.CertificateBuilder, names: Sequence[x509.GeneralName], authority_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _bmc(layout: Layout, name: str, address: str, issuer: x509.Name, authority_key: ec.EllipticCurvePrivateKey) -> None:
    """A BMC's certificate, and its wrong ones."""
    key = ec.generate_private_key(ec.SECP256R1())
    right = [x509.IPAddress(ipaddress.ip_address(address))]
    other = [x509.IPAddress(ipaddress.ip_address(plan.SOS))]
    past = -2 * _LIFETIME
    variants = {
        name: (None, right, authority_key),
        f"{name}.expired": (past, right, authority_key),
        f"{name}.early": (_LIFETIME, right, authority_key),
        f"{name}.other-name": (None, other, authority_key),
        f"{name}.other-ca": (None, right, ec.generate_private_key(ec.SECP256R1())),
    }
    for file, (shift, names, signer) in variants.items():
        made = _server(_builder(name, issuer, key.public_key(), shift=shift), names, signer)
        write_private(layout.tls / f"{file}.key", _pem(key))
        write_private(layout.tls / f"{file}.crt", made.public_bytes(serialization.Encoding.PEM))


def ensure(layout: Layout, bmcs: Mapping[str, str] | None = None) -> None:
    """Make the CA and the servers' certificate, unless they are there: a CA must outlive a power failure.

    `bmcs` are names and addresses of a rack's BMCs. Each gets a certificate of its own, `<name>`, and wrong ones for
    rehearsals: `<name>.expired`, `<name>.early` (not valid yet), `<name>.other-name` and `<name>.other-ca`.
    """
    last = layout.tls / f"{tuple(plan.TLS_NAMES)[-1]}.crt"
    if layout.ca.exists() and last.exists():
        return
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = (
        _builder("metal-ipi lab CA", None, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    for name, address in (bmcs or {}).items():
        _bmc(layout, name, address, authority.subject, authority_key)
    server_key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName(name) for name in plan.TLS_NAMES]
    addresses = [x509.IPAddress(ipaddress.ip_address(a)) for a in sorted(set(plan.TLS_NAMES.values()))]
    server = _server(
        _builder("metal-ipi lab", authority.subject, server_key.public_key()), [*names, *addresses], authority_key
    )
    # The CA's key is not kept: nothing else will ever be signed by it.
    write_private(layout.ca, authority.public_bytes(serialization.Encoding.PEM))
    for name in plan.TLS_NAMES:
        write_private(layout.tls / f"{name}.key", _pem(server_key))
        write_private(layout.tls / f"{name}.crt", server.public_bytes(serialization.Encoding.PEM))
