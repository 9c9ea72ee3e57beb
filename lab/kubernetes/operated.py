"""What OpenShift's operators do for the API servers of a control plane: who is of it, and their certificates.

Certificates are signed by the signers that the installer made, with the names that the kube-apiserver operator gives
them (openshift/cluster-kube-apiserver-operator, certrotationcontroller). What concerns nodes and objects is done by
`lab-openshift operators`, which goes by a file that is written here.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import trustme
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.errors import LabError
from lab.kubernetes.access import NAME, Access, kubeconfig, send
from lab.kubernetes.hello import Hello, NodeHello, Operated, Pair
from lab.layout import write_private

_LIFETIME = datetime.timedelta(days=30)
_MASTER = "node-role.kubernetes.io/master"


def of_node(hello: NodeHello, operated: Operated) -> bool:
    """Whether a node's certificate is of this cluster."""
    signer = x509.load_pem_x509_certificate(operated.kubelets.certificate.encode())
    try:
        certificate = x509.load_der_x509_certificate(hello.certificate)
        certificate.verify_directly_issued_by(signer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    wanted = (f"system:node:{hello.name}", "system:nodes")
    now = datetime.datetime.now(datetime.UTC)
    return (
        len(names) == len(groups) == 1
        and (names[0].value, groups[0].value) == wanted
        and certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc
    )


def proves(hello: NodeHello, challenge: bytes, proof: bytes) -> None:
    """Check that the sender of a certificate has its key. Raises LabError."""
    key = x509.load_der_x509_certificate(hello.certificate).public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise LabError(f"the key of {hello.name} is of an unknown kind")
    try:
        key.verify(proof, challenge, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise LabError(f"another machine uses the name {hello.name}") from None


def is_master(access: Access, name: str) -> bool:
    """Whether a node is of the control plane, by what the API says. Raises LabError where it does not know the node."""
    with access.client() as client:
        labels: dict[str, str] = send(client, "GET", f"/api/v1/nodes/{name}")["metadata"].get("labels") or {}
    return _MASTER in labels


def certificates(operated: Operated) -> tuple[Pair, ...]:
    """The certificates of one API server of the control plane; the first one is shown to who asks for no name."""
    domain, service = operated.facts["domain"], "kubernetes.default.svc"
    # The API's own Service has the first address of each network.
    addresses = [str(ipaddress.ip_network(each)[1]) for each in operated.service_network]
    wanted = (
        ("lb", f"api.{domain}", [f"api.{domain}"]),
        ("lb", f"api-int.{domain}", [f"api-int.{domain}"]),
        ("localhost", "localhost", ["localhost", "127.0.0.1"]),
        ("service-network", service, ["kubernetes", "kubernetes.default", service, *addresses]),
    )
    return tuple(_issue(operated.signers[signer], subject, names) for signer, subject, names in wanted)


def local_kubeconfig(hello: Hello) -> str:
    """The administrator's for the API server of a machine itself, which the operator keeps on the control plane's disks
    (cluster-kube-apiserver-operator, bindata/assets/kube-apiserver/node-kubeconfigs.yaml)."""
    assert hello.operated is not None, "only such clusters are operated from outside"
    authorities, own = _authorities(hello.operated), hello.controller
    return kubeconfig("https://localhost:6443", authorities, own.certificate, own.key)


def _authorities(operated: Operated) -> str:
    """Whom those trust who ask the API."""
    return "".join(f"{operated.signers[name].certificate.strip()}\n" for name in sorted(operated.signers))


def _issue(signer: Pair, subject: str, names: Sequence[str]) -> Pair:
    last = x509.load_pem_x509_certificate(signer.certificate.encode()).not_valid_after_utc
    end = min(datetime.datetime.now(datetime.UTC) + _LIFETIME, last)
    authority = trustme.CA.from_pem(signer.certificate.encode(), signer.key.encode())
    made = authority.issue_cert(*names, common_name=subject, not_after=end)
    return Pair(certificate=made.cert_chain_pems[0].bytes().decode(), key=made.private_key_pem.bytes().decode())


def tell(path: Path, hello: Hello, authority: Path, servers: Sequence[str]) -> None:
    """Write the file that `lab-openshift operators` reads: `servers` are the addresses of running API servers."""
    assert hello.operated is not None, "only such clusters are operated from outside"
    told: dict[str, Any] = {
        "servers": list(servers),
        "name": NAME,
        "authority": authority.read_text(),
        **asdict(hello.controller),
        "kubelets": asdict(hello.operated.kubelets),
        "facts": dict(hello.operated.facts),
        "clients": _authorities(hello.operated),
    }
    write_private(path, json.dumps(told))
