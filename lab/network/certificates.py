"""The lab's two certificate authorities and the certificates of its servers.

One stands for the authorities that every system trusts: names of the outside world have certificates of it. The other
is the facility's own: it signed the boot server's certificate, and no machine trusts it unless it is told to.
"""

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
    now = datetime.datetime.now(datetime.UTC) + (shift or datetime.timedelta())
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
    """Make the authorities and the servers' certificates, unless they are there: they must outlive a power failure.

    `bmcs` are names and addresses of a rack's BMCs. Each gets a certificate of its own, `<name>`, and wrong ones for
    rehearsals: `<name>.expired`, `<name>.early` (not valid yet), `<name>.other-name` and `<name>.other-ca`.
    """
    last = layout.tls / f"{tuple(plan.TLS_NAMES)[-1]}.crt"
    if layout.ca.exists() and layout.facility_ca.exists() and last.exists():
        return
    public, authority_key = _authority("metal-ipi lab CA")
    for name, address in (bmcs or {}).items():
        _bmc(layout, name, address, public.subject, authority_key)
    outside = {name: address for name, address in plan.TLS_NAMES.items() if name != plan.BOOT_NAME}
    _servers(layout, outside, public, authority_key)
    facility, facility_key = _authority("metal-ipi lab facility CA")
    _servers(layout, {plan.BOOT_NAME: plan.BOOT}, facility, facility_key)
    # Their keys are not kept: nothing else will ever be signed by them.
    write_private(layout.ca, public.public_bytes(serialization.Encoding.PEM))
    write_private(layout.facility_ca, facility.public_bytes(serialization.Encoding.PEM))


def _authority(name: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        _builder(name, None, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return made, key


def _servers(
    layout: Layout, addresses: Mapping[str, str], authority: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    """One certificate for these names and addresses, a file for each name."""
    server_key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName(name) for name in addresses]
    ips = [x509.IPAddress(ipaddress.ip_address(each)) for each in sorted(set(addresses.values()))]
    server = _server(_builder("metal-ipi lab", authority.subject, server_key.public_key()), [*names, *ips], key)
    for name in addresses:
        write_private(layout.tls / f"{name}.key", _pem(server_key))
        write_private(layout.tls / f"{name}.crt", server.public_bytes(serialization.Encoding.PEM))
