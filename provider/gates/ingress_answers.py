"""ingress-answers: a router of the cluster answers at the address of ingress.

It connects as a browser would, to port 443 of the address, for a name below `*.apps` that no route has: a router
answers that with 503. The certificate shows that it is a router of this cluster: OpenShift's ingress operator issues it
for `*.apps.<domain>`, or the site does (ingresscontroller, spec.defaultCertificate). Its issuer is unknown, so it is
not verified. A load balancer without a working router closes the connection.

Source: openshift/cluster-ingress-operator, pkg/operator/controller/certificate; openshift/router, error pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl

from metal_ipi.provider.gates import Check, Observation, Spec
from metal_ipi.provider.gates.https import reason_of
from metal_ipi.provider.resource import Context

_PORT = 443
_TIMEOUT = 5.0
_NAME = "metal-ipi-asks-for-a-router"


def open_check(context: Context, spec: Spec, old: Spec | None) -> Check | None:
    """A gate that passed is checked again only for another address or domain."""
    same = old is not None and all(old.get(key) == spec[key] for key in ("address", "domain"))
    return None if same else IngressAnswers(str(spec["address"]), str(spec["domain"]))


class IngressAnswers(Check):
    """See `Check`."""

    def __init__(self, address: str, domain: str, port: int = _PORT) -> None:
        self._address, self._domain, self._port = address, domain, port
        # The issuer is unknown, so only the names in the certificate are checked.
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    async def look(self, elapsed: float) -> Observation:
        try:
            async with asyncio.timeout(_TIMEOUT):
                names, line = await self._ask()
        except TimeoutError:
            return self._not_yet("nobody answers")
        except (OSError, EOFError) as error:
            return self._not_yet(reason_of(error, f"{self._address}:{self._port}"))
        wanted = (f"*.{self._domain}", f"{_NAME}.{self._domain}")
        if not set(wanted) & set(names):
            return self._not_yet(
                f"the server that answers has a certificate for {', '.join(names) or 'nobody'}, not {wanted[0]}"
            )
        words = line.split()
        if not line.startswith("HTTP/") or len(words) < 2:
            return self._not_yet(f"the server that answers does not speak HTTP: {line[:80]!r}")
        return Observation(passed=True, text=f"a router answers at {self._address}: HTTP {words[1]}")

    def _not_yet(self, why: str) -> Observation:
        return Observation(passed=False, text=f"no router of *.{self._domain} at {self._address}:{self._port}: {why}")

    async def _ask(self) -> tuple[list[str], str]:
        """The names in the certificate, and the first line of the answer."""
        from cryptography import x509

        host = f"{_NAME}.{self._domain}"
        reader, writer = await asyncio.open_connection(self._address, self._port, ssl=self._tls, server_hostname=host)
        try:
            shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            names = list[str]()
            with contextlib.suppress(x509.ExtensionNotFound, ValueError):
                found = x509.load_der_x509_certificate(shown or b"").extensions
                alternative = found.get_extension_for_class(x509.SubjectAlternativeName).value
                names = alternative.get_values_for_type(x509.DNSName)
            writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            line = await reader.readline()
        finally:
            writer.close()
        if not line:
            raise EOFError("the connection is closed without an answer")
        return names, line.decode(errors="replace").strip()
