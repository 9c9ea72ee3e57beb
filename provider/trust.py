"""TLS trust of HTTP clients that use requests: sushy and openstacksdk."""

from __future__ import annotations

import ssl
from typing import Any


def adapter(*, ca: str | None, fingerprint: str | None = None) -> Any:
    """An HTTPS adapter that trusts `ca` (PEM; None: the system's authorities), or only the certificate with this
    SHA-256 fingerprint (hex digits)."""
    from requests.adapters import HTTPAdapter

    if fingerprint is None:
        context = ssl.create_default_context(cadata=ca)
        # Self-signed certificates of BMCs lack extensions that strict verification requires, which is the default from
        # Python 3.13 on.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        tls = {"ssl_context": context, "cert_reqs": "CERT_REQUIRED"}
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        tls = {"ssl_context": context, "cert_reqs": "CERT_NONE", "assert_fingerprint": fingerprint}

    class Trusting(HTTPAdapter):
        def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
            host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
            return host, tls

        def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
            """Does nothing: requests would otherwise trust its own CA bundle too."""

    return Trusting()
