"""How to reach a cluster's API: inputs of several resources."""

from __future__ import annotations

from metal_ipi.provider.forms import HttpsUrl, Pem
from metal_ipi.provider.given import Given, Secret
from metal_ipi.provider.inputs import Inputs


class ClusterCredentials(Inputs):
    """How to reach a cluster's API as administrator."""

    url: Given[HttpsUrl]
    """Base URL, `https://api.<cluster>.<domain>:6443`."""
    ca_pem: Given[Pem]
    """Certificates of the authorities that may sign the API's TLS certificate."""
    client_cert_pem: Given[Pem]
    """Client certificate."""
    client_key_pem: Given[Secret[Pem]]
    """Key of the client certificate. Secret."""
