"""Keys that nobody outside a cluster's directory needs: a CA of the lab's own, and a pair of it for all processes.

etcd listens on a loopback port, where any user of the machine could read every Secret: it answers only to whoever holds
this pair. API servers show it to the lab, which asks for them by `NAME`: whatever certificate a cluster has given them,
or has let expire.
"""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lab.layout import write_private

_EARLY = datetime.timedelta(days=1)
_LIFETIME = datetime.timedelta(days=3650)


NAME = "kubernetes.lab.internal"
"""What the lab calls every API server."""


def ensure(directory: Path, address: str) -> None:
    """Make `lab-ca.crt`, `lab.crt` and `lab.key` below `directory` for etcd on `address`, unless they are there."""
    if (directory / "lab.crt").exists():
        return
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = (
        _builder("metal-ipi lab Kubernetes CA", None, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        _builder("lab", authority.subject, key)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(NAME), x509.IPAddress(ipaddress.ip_address(address))]),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )
    write_private(directory / "lab-ca.crt", authority.public_bytes(serialization.Encoding.PEM))
    write_private(directory / "lab.key", _pem(key))
    write_private(directory / "lab.crt", certificate.public_bytes(serialization.Encoding.PEM))


def _builder(subject: str, issuer: x509.Name | None, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer or name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + _LIFETIME)
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
