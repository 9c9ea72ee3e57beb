"""What is taken from the installer's output."""

from __future__ import annotations

import base64
import json

import pytest
import yaml

from metal_ipi.components.install.assets import AssetsError, Credentials, credentials, parse

_WHOLE = {name: name for name in ("bootstrap", "worker", "kubeconfig", "kubeadminPassword", "metadata")}


def test_a_whole_document_is_taken_and_what_is_unknown_left_out() -> None:
    assert parse(json.dumps({**_WHOLE, "extra": 1})) == _WHOLE


@pytest.mark.parametrize("missing", list(_WHOLE))
def test_a_document_that_is_not_whole_is_refused(missing: str) -> None:
    with pytest.raises(AssetsError) as caught:
        parse(json.dumps({name: text for name, text in _WHOLE.items() if name != missing}))
    assert str(caught.value) == "the installer driver's document is not whole"


@pytest.mark.parametrize(("text", "message"), [("hunter2", "printed no JSON document"), ("[]", "is not whole")])
def test_anything_else_is_refused_and_not_shown(text: str, message: str) -> None:
    with pytest.raises(AssetsError, match=message) as caught:
        parse(text)
    assert "hunter2" not in str(caught.value) and (caught.value.__suppress_context__ or text == "[]")


def _kubeconfig(ca: str = "CA", cert: str = "CERT", key: str = "KEY") -> str:
    ca, cert, key = (base64.b64encode(text.encode()).decode() for text in (ca, cert, key))
    return yaml.safe_dump(
        {
            "clusters": [{"name": "lab", "cluster": {"server": "https://x", "certificate-authority-data": ca}}],
            "users": [{"name": "admin", "user": {"client-certificate-data": cert, "client-key-data": key}}],
        }
    )


def test_credentials_are_the_embedded_certificates() -> None:
    assert credentials(_kubeconfig()) == Credentials(ca_pem="CA", client_cert_pem="CERT", client_key_pem="KEY")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "clusters: []",
        "{",
        _kubeconfig().replace("client-key-data", "client-key"),
        _kubeconfig().replace(base64.b64encode(b"KEY").decode(), "hunter2!"),
        _kubeconfig().replace(base64.b64encode(b"CA").decode(), "/w=="),
    ],
)
def test_a_kubeconfig_without_them_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(AssetsError) as caught:
        credentials(text)
    assert str(caught.value) == "the installer's kubeconfig holds no embedded certificates"
    assert caught.value.__suppress_context__
