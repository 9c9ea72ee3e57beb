"""HTTPS to a cluster's API, verified against the cluster's own CA; errors become short texts."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metal_ipi.provider.errors import InvalidInputs

if TYPE_CHECKING:
    import httpx

_TIMEOUT = 5.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer, or the reason why there is none."""

    status: int
    """HTTP status; 0 when there was no answer."""
    body: Mapping[str, Any]
    """The JSON object; empty if the body is not one."""
    problem: str
    """What is wrong; empty for status 2xx."""


class Api:
    """A cluster's API. The client is made once, because reading certificates for each look takes longer than the
    look."""

    def __init__(self, spec: Mapping[str, Any], *, keeps: bool = False) -> None:
        """`keeps`: connections are used again, until `aclose`, for an API whose addresses stay."""
        import httpx

        self.url = str(spec["url"]).rstrip("/")
        self.tls = _tls(str(spec["caPem"]), spec.get("clientCertPem"), spec.get("clientKeyPem"))
        # Connect directly: a proxy of the environment is for hosts outside. Connections to a cluster that is installed
        # are not kept, so that each look resolves the name again: its addresses change meanwhile.
        limits = httpx.Limits(max_keepalive_connections=None if keeps else 0)
        self._client = httpx.AsyncClient(verify=self.tls, timeout=_TIMEOUT, trust_env=False, limits=limits)

    async def aclose(self) -> None:
        """Close the connections that are kept."""
        await self._client.aclose()

    async def get(self, path: str = "") -> Answer:
        """Send a GET request."""
        return await self.request("GET", path)

    async def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """Send a request. Errors of the network or the server are returned as `problem`, not raised.

        A PATCH is a JSON merge patch: fields that are null are removed.
        """
        import httpx

        headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else None
        try:
            answer = await self._client.request(method, self.url + path, json=body, headers=headers)
        except httpx.TransportError as error:
            return Answer(status=0, body={}, problem=reason_of(error, self.url))
        problem = "" if answer.is_success else f"HTTP {answer.status_code}"
        return Answer(status=answer.status_code, body=_object(answer), problem=problem)


def _object(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def conditions_of(item: Mapping[str, Any] | None) -> Mapping[str, Mapping[str, Any]]:
    """The conditions in an object's status, by type."""
    found = ((item or {}).get("status") or {}).get("conditions") or ()
    return {str(each.get("type")): each for each in found}


def is_ready(item: Mapping[str, Any] | None) -> bool:
    """Whether a node or a pod is Ready according to the API."""
    return conditions_of(item).get("Ready", {}).get("status") == "True"


def reason_of(error: BaseException, url: str) -> str:
    """The root cause of a transport error in one phrase; httpx hides it in the chain of causes."""
    host = url.rsplit("//", maxsplit=1)[-1].split("/", maxsplit=1)[0]
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return f"the name {host.rsplit(':', 1)[0]} does not resolve ({cause.strerror})"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"TLS: {host} has a certificate that is not valid: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLWantReadError | ssl.SSLWantWriteError):
            return f"TLS: {cause.reason or cause}"
        if isinstance(cause, ConnectionRefusedError):
            return f"{host} refuses the connection"
        cause = cause.__cause__ or cause.__context__
    kind = type(error).__name__
    if "Timeout" in kind:
        return f"{host} does not answer"
    return str(error) or kind


def _tls(ca: str, certificate: Any, key: Any) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=ca)
        if certificate and key:
            _load_client_certificate(context, f"{certificate}\n{key}\n")
    except (ssl.SSLError, ValueError) as error:
        raise InvalidInputs(f"caPem, clientCertPem or clientKeyPem cannot be read: {error}") from None
    return context


def _load_client_certificate(context: ssl.SSLContext, pem: str) -> None:
    """Load the client certificate. ssl reads certificates from files only; if the kernel has memory files, the key is
    not written to disk."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("client-certificate")
        with os.fdopen(descriptor, "w") as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        return
    with tempfile.NamedTemporaryFile("w") as file:  # readable by the owner only
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
