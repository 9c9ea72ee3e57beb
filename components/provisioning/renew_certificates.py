"""Issues the certificates that the service is served with, and renews them. Runs on the hub: once by `up`, then daily.

    renew_certificates.py WANTED AUTHORITY [--by-up]

WANTED is a JSON file: {"certificates": {<Secret>: {"names": [...], "restarts": <StatefulSet>}}, "validDays": ...,
"renewBeforeDays": ...}. AUTHORITY is a directory with `tls.crt` and `tls.key`.

The web servers and the database see for themselves that a mounted Secret has changed. Ironic reads it when it starts
only (ironic/common/wsgi_service.py, 39.0.0): its StatefulSet is told to start its pods again, one by one, unless `up`
does that. A Secret is annotated with the certificate for which that was done, so that the next run ends what a killed
one began.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

TAKEN_UP = "metal-ipi/taken-up"
SERVED_WITH = "metal-ipi/served-with"
_CLOCK_SKEW = timedelta(hours=1)
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS = 30


class Hub(Protocol):
    """The API of the hub, for objects of the service's namespace."""

    def get(self, path: str) -> dict[str, Any] | None:
        """An object, e.g. `api/v1/secrets/ironic-tls`; None where there is none."""
        ...

    def patch(self, path: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """Merge a change into an object; the object as it is then. Raises OSError, also where it has changed since."""
        ...


class Api:
    """The hub's, by the account of the pod that this runs in."""

    def __init__(self, account: Path = _ACCOUNT, server: str = "https://kubernetes.default.svc") -> None:
        self._account = account
        self._server = server
        self._trust = ssl.create_default_context(cafile=str(account / "ca.crt"))

    def get(self, path: str) -> dict[str, Any] | None:
        """As `Hub` says."""
        try:
            return self._ask("GET", path)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def patch(self, path: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """As `Hub` says."""
        return self._ask("PATCH", path, json.dumps(change).encode())

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        group, kind, name = path.rsplit("/", 2)
        url = f"{self._server}/{group}/namespaces/{(self._account / 'namespace').read_text()}/{kind}/{name}"
        url += "?fieldManager=metal-ipi-certificates" if body else ""
        request = urllib.request.Request(url, body, method=method)  # noqa: S310 - the hub's
        request.add_header("Authorization", f"Bearer {(self._account / 'token').read_text()}")
        request.add_header("Content-Type", "application/merge-patch+json")
        with urllib.request.urlopen(request, timeout=_SECONDS, context=self._trust) as answer:  # noqa: S310
            return json.load(answer)


class Authority:
    """Who signs (ECDSA on P-256, which FIPS takes)."""

    def __init__(self, certificate: bytes, key: bytes) -> None:
        self.pem = certificate
        self.certificate = x509.load_pem_x509_certificate(certificate)
        self._key: Any = serialization.load_pem_private_key(key, None)

    def issue(self, names: Sequence[str], days: int) -> dict[str, bytes]:
        """A certificate for servers and clients, its key, and who vouches for it: the content of a Secret."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        builder = x509.CertificateBuilder(
            issuer_name=self.certificate.subject,
            subject_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])]),
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - _CLOCK_SKEW,
            not_valid_after=now + timedelta(days=days),
        )
        own = dict.fromkeys(_USAGES, False) | {"digital_signature": True}
        for extension, critical in (
            (x509.SubjectAlternativeName([_general_name(each) for each in names]), False),
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (x509.KeyUsage(**own), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False),
            (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False),
        ):
            builder = builder.add_extension(extension, critical=critical)
        return {
            "tls.crt": builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
            "tls.key": key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
            "ca.crt": self.pem,
        }


_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def why_due(pem: bytes | None, authority: Authority, names: Sequence[str], valid: int, before: int) -> str | None:
    """Why a certificate is to be made anew, or None. `valid` and `before` are days."""
    if pem is None:
        return "there is none"
    try:
        own = x509.load_pem_x509_certificate(pem)
        own.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature) as error:
        return f"it is not by the authority ({type(error).__name__})"
    known = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    if set(known) != {_general_name(each) for each in names}:
        return "it is to be good for other names"
    if own.not_valid_after_utc - own.not_valid_before_utc != timedelta(days=valid) + _CLOCK_SKEW:
        return f"it is to be good for {valid} days"
    if own.not_valid_after_utc - datetime.now(UTC) < timedelta(days=before):
        return f"it ends at {own.not_valid_after_utc:%Y-%m-%d %H:%M}"
    return None


def renew(hub: Hub, wanted: Mapping[str, Any], authority: Authority, *, by_up: bool) -> list[str]:
    """Renew what is due, and have it taken up; what was done."""
    done: list[str] = []
    for name, one in wanted["certificates"].items():
        path = f"api/v1/secrets/{name}"
        secret = hub.get(path)
        if secret is None:
            raise SystemExit(f"there is no Secret {name}: run `up`, which makes it")
        pem = (secret.get("data") or {}).get("tls.crt")
        known = base64.b64decode(pem) if pem else None
        reason = why_due(known, authority, one["names"], wanted["validDays"], wanted["renewBeforeDays"])
        if reason is not None:
            fresh = authority.issue(one["names"], wanted["validDays"])
            known = fresh["tls.crt"]
            secret = _patch(
                hub, path, secret, data={key: base64.b64encode(each).decode() for key, each in fresh.items()}
            )
            done.append(f"{name}: a new certificate, for {reason}")
        assert known is not None
        digest = hashlib.sha256(known).hexdigest()[:16]
        if one["restarts"] is None or (secret["metadata"].get("annotations") or {}).get(TAKEN_UP) == digest:
            continue
        servers = f"apis/apps/v1/statefulsets/{one['restarts']}"
        if not by_up and hub.get(servers) is not None:
            template = {"metadata": {"annotations": {SERVED_WITH: digest}}}
            hub.patch(servers, {"spec": {"template": template}})
            done.append(f"{one['restarts']}: its pods are started again, one by one")
        _patch(hub, path, secret, metadata={"annotations": {TAKEN_UP: digest}})
    return done


def _patch(hub: Hub, path: str, secret: Mapping[str, Any], **change: Any) -> dict[str, Any]:
    """Change a Secret, unless somebody else has since it was read."""
    version = {"resourceVersion": secret["metadata"]["resourceVersion"]}
    return hub.patch(path, {**change, "metadata": {**change.get("metadata", {}), **version}})


def main(wanted: str, authority: str, *flags: str) -> None:
    """Once."""
    signs = Authority((Path(authority) / "tls.crt").read_bytes(), (Path(authority) / "tls.key").read_bytes())
    done = renew(Api(), json.loads(Path(wanted).read_text()), signs, by_up="--by-up" in flags)
    print("\n".join(done) or "no certificate is near its end")


if __name__ == "__main__":
    main(*sys.argv[1:])
