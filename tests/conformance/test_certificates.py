"""The real installer's certificates: who verifies whom, and when they end."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from metal_ipi.components.boot.ignition import certificate_authorities, data_of
from metal_ipi.components.endpoints import kube_vip
from metal_ipi.components.install import renewal
from tests.conformance import ignition
from tests.conformance.conftest import Configured, Made
from tests.conformance.facilities import SETTINGS, Facility

_TLS = "/opt/openshift/tls/"
_DAY = timedelta(days=1)
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.S)
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{200,}={0,2}")
_SERVING = {
    "kube-apiserver-lb-server": ("api.{domain}",),
    "kube-apiserver-internal-lb-server": ("api-int.{domain}",),
    "kube-apiserver-localhost-server": ("localhost", "127.0.0.1"),
}
"""The API's serving certificates on the bootstrap machine, and the names they are asked by."""
_A_DAY = {
    "aggregator",
    "aggregator-signer",
    "kubelet-signer",
    "system:kube-apiserver",
    "system:kube-apiserver-proxy",
}
"""Common names of certificates that live for 24 hours. `system:kube-apiserver` also calls itself one that lives for a
year, the API server's client certificate for kubelets."""


def _certificates(facility: Facility, name: str) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(facility.bootstrap_files[f"{_TLS}{name}.crt"])


def _verify(authorities: Sequence[x509.Certificate], name: str, chain: Sequence[x509.Certificate]) -> None:
    """As a Go client does, which looks at subject alternative names only. Raises VerificationError."""
    subject: x509.DNSName | x509.IPAddress
    try:
        subject = x509.IPAddress(ip_address(name))
    except ValueError:
        subject = x509.DNSName(name)
    builder = PolicyBuilder().store(Store(list(authorities))).time(datetime.now(UTC))
    builder.build_server_verifier(subject).verify(chain[0], list(chain[1:]))


def _of_kubeconfig(text: str | bytes) -> list[x509.Certificate]:
    (cluster,) = yaml.safe_load(text)["clusters"]
    return x509.load_pem_x509_certificates(base64.b64decode(cluster["cluster"]["certificate-authority-data"]))


@pytest.mark.parametrize("name", SETTINGS)
def test_who_has_our_pointer_trusts_the_machine_config_server_for_api_int_only(name: str, made: Made) -> None:
    facility = made(name)
    trusted = certificate_authorities(json.loads(facility.assets)["worker"])
    authorities = [each for url in trusted for each in x509.load_pem_x509_certificates(data_of(url).encode())]
    server = _certificates(facility, "machine-config-server")
    _verify(authorities, f"api-int.{facility.domain}", server)
    with pytest.raises(VerificationError):
        _verify(authorities, f"api.{facility.domain}", server)
    with pytest.raises(VerificationError):
        _verify(_certificates(facility, "kube-apiserver-lb-signer"), f"api-int.{facility.domain}", server)


@pytest.mark.parametrize("name", SETTINGS)
def test_an_administrators_kubeconfig_verifies_the_api_by_all_of_its_names(name: str, made: Made) -> None:
    facility = made(name)
    kubeconfig = json.loads(facility.assets)["kubeconfig"]
    assert yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["server"] == f"https://api.{facility.domain}:6443"
    for certificate, names in _SERVING.items():
        for each in names:
            _verify(
                _of_kubeconfig(kubeconfig), each.format(domain=facility.domain), _certificates(facility, certificate)
            )


@pytest.mark.parametrize("name", ["metal", "rack"])
def test_kube_vip_trusts_the_bootstrap_machines_api_server(name: str, made: Made) -> None:
    """The script asks for /readyz by the name api-int; with ARP kube-vip itself asks `localhost`, as administrator."""
    facility = made(name)
    path = _administrators()[1]
    kubeconfig = facility.bootstrap_files[path]
    for certificate, names in _SERVING.items():
        for each in names:
            _verify(
                _of_kubeconfig(kubeconfig), each.format(domain=facility.domain), _certificates(facility, certificate)
            )
    # The script reads the first authority of the text, as text.
    assert len(re.findall(rb"certificate-authority-data", kubeconfig)) == 1
    (user,) = yaml.safe_load(kubeconfig)["users"]
    client = x509.load_pem_x509_certificate(base64.b64decode(user["user"]["client-certificate-data"]))
    signers = _certificates(facility, "kube-apiserver-complete-client-ca-bundle")
    assert [each for each in signers if each.subject == client.issuer], "the API server knows who that is"


def test_kube_vip_finds_a_kubeconfig_of_the_control_planes_own(made: Made, configured: Configured) -> None:
    """On a control plane machine the API server's own pod brings it: cluster-kube-apiserver-operator,
    bindata/assets/kube-apiserver/node-kubeconfigs.yaml and pkg/operator/targetconfigcontroller; its installer writes
    below /etc/kubernetes/static-pod-resources. Nothing of the rendered configuration has another opinion."""
    path = _administrators()[0]
    assert path.startswith("/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/")
    assert path not in made("metal").bootstrap_files, "else a machine that bootstraps in place would take this one"
    served = ignition.files(json.loads(configured("metal").served))
    assert path not in served and _administrators()[1] not in served
    kubelet = yaml.safe_load(served["/etc/kubernetes/kubelet.conf"])
    assert f"{kubelet['staticPodPath']}/" == kube_vip.MANIFEST.removesuffix("metal-ipi-kube-vip.json")


def _administrators() -> list[str]:
    """Where the script of kube-vip looks for a kubeconfig: on the control plane, on the bootstrap machine."""
    settings = kube_vip.KubeVip(address="192.0.2.9", image="x", hold_seconds=9, keepalive_seconds=3, domain="x.test")
    (text,) = (file.text for file in kube_vip.files(settings) if file.path.endswith(".env"))
    (line,) = (line for line in text.splitlines() if line.startswith("KUBECONFIGS="))
    return line.partition("=")[2].strip("'").split()


@pytest.mark.parametrize("name", SETTINGS)
def test_these_certificates_live_for_a_day_and_no_others(name: str, made: Made) -> None:
    facility = made(name)
    found = {_common_name(each) for each in _everywhere(facility) if _life(each) < 2 * _DAY}
    # That of Ironic on the bootstrap machine, which does not start here (pkg/asset/tls/ironictls.go).
    assert found == (_A_DAY | {"ironic"} if name in ("baremetal", "arbiter") else _A_DAY)
    sites_own = x509.load_pem_x509_certificates(facility.authority.encode()) if facility.authority else []
    longer = {_life(each).days for each in _everywhere(facility) if each not in sites_own} - {1}
    assert longer == {365, 3650}


@pytest.mark.parametrize("name", SETTINGS)
def test_our_rule_sees_the_certificate_that_ends_first(name: str, made: Made) -> None:
    facility = made(name)
    found = _everywhere(facility)
    seen = renewal.certificates(facility.assets)
    first = min(each.not_valid_after_utc for each in found)
    assert min(each.not_valid_after_utc for each in seen) == first
    # None of those that end within a day stands only where the rule does not look.
    short = {each.fingerprint(hashes.SHA256()) for each in found if _life(each) < 2 * _DAY}
    assert short <= {each.fingerprint(hashes.SHA256()) for each in seen}
    begin = min(each.not_valid_before_utc for each in found if each.not_valid_after_utc == first)
    early, late, dead = (begin + timedelta(hours=hours) for hours in (11.9, 12.1, 24.1))
    assert _reasons(facility, early) == ()
    (why,) = _reasons(facility, late)
    assert "only 11.9 h of its 24.0 h are left" in why
    (why,) = _reasons(facility, dead)
    assert why.endswith("it has expired")


def _reasons(facility: Facility, time: datetime) -> tuple[str, ...]:
    return renewal.reasons(was=facility.request, now=facility.request, assets=facility.assets, time=time)


def _everywhere(facility: Facility) -> list[x509.Certificate]:
    """Every certificate in the driver's document, however deep it is wrapped: files, manifests, kubeconfigs."""
    document: dict[str, str] = json.loads(facility.assets)
    texts = [*facility.bootstrap_files.values(), *(text.encode() for text in document.values())]
    pems = {pem for text in texts for pem in _pems(text)}
    return [x509.load_pem_x509_certificate(pem) for pem in pems]


def _pems(text: bytes) -> Iterator[bytes]:
    yield from (pem.rstrip() for pem in _PEM.findall(text))
    for packed in _BASE64.findall(text):
        unpacked = base64.b64decode(packed + b"=" * (-len(packed) % 4))
        if unpacked[:1] in (b"-", b"{", b"c", b"a"):  # PEM, JSON, YAML
            yield from _pems(unpacked)


def _life(certificate: x509.Certificate) -> timedelta:
    return certificate.not_valid_after_utc - certificate.not_valid_before_utc


def _common_name(certificate: x509.Certificate) -> str:
    name: Any = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
    return str(name)
