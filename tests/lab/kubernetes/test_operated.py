"""What the lab does in the place of OpenShift's operators for the API servers of a control plane."""

from __future__ import annotations

import base64
import datetime
import json
from dataclasses import replace
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.errors import LabError
from lab.kubernetes.hello import Hello, NodeHello, Operated, Pair
from lab.kubernetes.operated import certificates, local_kubeconfig, of_node, proves

_NODE = "c-control-plane-0.c.test"
_DAY = datetime.timedelta(days=1)


def _pem_of(key: Any) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _pair(authority: trustme.CA) -> Pair:
    return Pair(certificate=authority.cert_pem.bytes().decode(), key=authority.private_key_pem.bytes().decode())


class _Keys:
    def __init__(self) -> None:
        self.signers = {name: trustme.CA() for name in ("lb", "localhost", "service-network")}
        self.kubelets = trustme.CA()
        self.operated = Operated(
            signers={name: _pair(ca) for name, ca in self.signers.items()},
            kubelets=_pair(self.kubelets),
            facts={"domain": "c.test", "serviceNetwork": ["172.20.0.0/16", "fd02::/112"]},
        )
        self.key = ec.generate_private_key(ec.SECP256R1())

    def node(self, signer: Pair | None = None, *, days: int = 1, **names: str) -> NodeHello:
        """A node with a certificate of this signer's."""
        signer = signer or self.operated.kubelets
        authority = x509.load_pem_x509_certificate(signer.certificate.encode())
        key = serialization.load_pem_private_key(signer.key.encode(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        told = {"user": f"system:node:{_NODE}", "group": "system:nodes", **names}
        now = datetime.datetime.now(datetime.UTC)
        subject = [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, told["group"]),
            x509.NameAttribute(NameOID.COMMON_NAME, told["user"]),
        ]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(subject))
            .issuer_name(authority.subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 2 * _DAY)
            .not_valid_after(now + days * _DAY)
            .sign(key, hashes.SHA256())
        )
        return NodeHello(name=_NODE, certificate=certificate.public_bytes(serialization.Encoding.DER))


@pytest.fixture(scope="module")
def keys() -> _Keys:
    return _Keys()


def test_a_node_is_of_the_cluster_that_signed_its_certificate(keys: _Keys) -> None:
    assert of_node(keys.node(), keys.operated)
    assert not of_node(keys.node(_pair(trustme.CA())), keys.operated)
    assert not of_node(keys.node(days=-1), keys.operated), "its certificate has ended"
    assert not of_node(keys.node(user="system:node:another"), keys.operated)
    assert not of_node(keys.node(group="system:masters"), keys.operated)
    assert not of_node(replace(keys.node(), certificate=b"none"), keys.operated)


def test_who_shows_a_certificate_has_to_have_its_key(keys: _Keys) -> None:
    node, challenge = keys.node(), b"c" * 32
    proves(node, challenge, keys.key.sign(challenge, ec.ECDSA(hashes.SHA256())))
    other = ec.generate_private_key(ec.SECP256R1()).sign(challenge, ec.ECDSA(hashes.SHA256()))
    with pytest.raises(LabError, match=f"another machine uses the name {_NODE}"):
        proves(node, challenge, other)
    with pytest.raises(LabError, match="another machine uses"):
        proves(node, b"d" * 32, keys.key.sign(challenge, ec.ECDSA(hashes.SHA256())))


def test_each_name_of_the_api_has_a_certificate_of_its_signer(keys: _Keys) -> None:
    found = [x509.load_pem_x509_certificate(pair.certificate.encode()) for pair in certificates(keys.operated)]
    names = [
        certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(
            x509.DNSName
        )
        for certificate in found
    ]
    assert names == [
        ["api.c.test"],
        ["api-int.c.test"],
        ["localhost"],
        ["kubernetes", "kubernetes.default", "kubernetes.default.svc"],
    ]
    alternatives = found[-1].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = [str(address) for address in alternatives.get_values_for_type(x509.IPAddress)]
    assert addresses == ["172.20.0.1", "fd02::1"], "the first of each network of Services"
    for certificate, signer in zip(found, ("lb", "lb", "localhost", "service-network"), strict=True):
        ca = x509.load_pem_x509_certificate(keys.operated.signers[signer].certificate.encode())
        certificate.verify_directly_issued_by(ca)
        assert certificate.not_valid_after_utc <= ca.not_valid_after_utc


def test_a_machines_kubeconfig_trusts_what_its_own_server_shows(keys: _Keys) -> None:
    hello = Hello(
        clients="",
        service_account="",
        controller=Pair(certificate="who", key=_pem_of(keys.key)),
        certificate=Pair(certificate="c", key="k"),
        operated=keys.operated,
    )
    told: dict[str, Any] = json.loads(local_kubeconfig(hello))
    (cluster,), (user,) = told["clusters"], told["users"]
    assert cluster["cluster"]["server"] == "https://localhost:6443"
    bundle = base64.b64decode(cluster["cluster"]["certificate-authority-data"])
    trusted = {each.subject for each in x509.load_pem_x509_certificates(bundle)}
    shown = [x509.load_pem_x509_certificate(pair.certificate.encode()) for pair in certificates(keys.operated)]
    assert {certificate.issuer for certificate in shown} == trusted
    assert base64.b64decode(user["user"]["client-certificate-data"]) == b"who"
    (context,) = told["contexts"]
    assert context["name"] == told["current-context"]
    assert context["context"] == {"cluster": cluster["name"], "user": user["name"]}
