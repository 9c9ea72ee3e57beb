"""The lab's own way into an API server: plain requests with a client certificate, and a kubeconfig for others."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from lab.errors import LabError, ServiceFailed

Object = dict[str, Any]
MANAGER = "metal-ipi-lab"
"""The field manager of what the lab applies."""
NAME = "kubernetes.lab.internal"
"""What the lab calls every API server: it is shown the lab's own certificate for it, whatever others are shown."""

_TIMEOUT_SECONDS = 15.0
_INITIALIZING = 30.0
"""Seconds for which a question is repeated that an API server cannot answer yet."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """An API server, and who asks it. `ca`, `certificate` and `key` are PEM files."""

    url: str
    """`https://<address>:<port>`."""
    ca: Path
    certificate: Path
    key: Path
    name: str | None = None
    """The name in the server's certificate, where it is not the address."""

    def client(self) -> httpx.Client:
        """A client to be closed by whoever asked for it."""
        hooks = {"request": [self._ask_by_name]}
        return httpx.Client(
            base_url=self.url, verify=self._context(), timeout=_TIMEOUT_SECONDS, trust_env=False, event_hooks=hooks
        )

    def watcher(self) -> httpx.AsyncClient:
        """The same for code that waits for changes (lab.kubernetes.changes)."""

        async def ask_by_name(request: httpx.Request) -> None:
            self._ask_by_name(request)

        hooks = {"request": [ask_by_name]}
        return httpx.AsyncClient(
            base_url=self.url, verify=self._context(), timeout=_TIMEOUT_SECONDS, trust_env=False, event_hooks=hooks
        )

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(str(self.certificate), str(self.key))
        return context

    def _ask_by_name(self, request: httpx.Request) -> None:
        if self.name is not None:
            request.extensions["sni_hostname"] = self.name

    def kubeconfig(self) -> str:
        """The same as a kubeconfig, with everything in it; a secret."""
        authority, certificate, key = (path.read_text() for path in (self.ca, self.certificate, self.key))
        return kubeconfig(self.url, authority, certificate, key, name=self.name)


def kubeconfig(url: str, authority: str, certificate: str, key: str, *, name: str | None = None) -> str:
    """A kubeconfig with everything in it (JSON, which is YAML); `name` is the server's, where it is not in the URL."""

    def data(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    cluster = {"server": url, "certificate-authority-data": data(authority)}
    if name is not None:
        cluster["tls-server-name"] = name
    user = {"client-certificate-data": data(certificate), "client-key-data": data(key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "admin", "context": {"cluster": "lab", "user": "admin"}}],
        "current-context": "admin",
    }
    return json.dumps(document)


def send(client: httpx.Client, method: str, path: str, **options: Any) -> Object:
    """Send one request; raises LabError with the API's message if it is refused. A question that comes while the API
    server begins to keep a kind in memory, as after its definition has changed, is repeated."""
    response, until = client.request(method, path, **options), time.monotonic() + _INITIALIZING
    while method == "GET" and response.status_code == HTTPStatus.TOO_MANY_REQUESTS and time.monotonic() < until:
        time.sleep(float(response.headers.get("Retry-After", 1)))
        response = client.request(method, path, **options)
    document: Object = response.json()
    if response.is_error:
        raise LabError(f"{method} {path}: {response.status_code} {document.get('message')}")
    return document


def apply(client: httpx.Client, path: str, document: Mapping[str, Any]) -> None:
    """Create or change an object; repeating it changes nothing."""
    send(
        client,
        "PATCH",
        path,
        params={"fieldManager": MANAGER, "force": "true"},
        content=json.dumps(document),
        headers={"Content-Type": "application/apply-patch+yaml"},
    )


def define(access: Access, definitions: Sequence[Mapping[str, Any]], seconds: float = 20.0) -> None:
    """Apply CustomResourceDefinitions and wait until the API serves their kinds. Repeating it changes nothing."""
    base = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    with access.client() as client:
        for definition in definitions:
            apply(client, f"{base}/{definition['metadata']['name']}", definition)
        waiting = {str(definition["metadata"]["name"]) for definition in definitions}
        deadline = time.monotonic() + seconds
        while waiting:
            waiting = {name for name in waiting if not _is_established(send(client, "GET", f"{base}/{name}"))}
            if waiting and time.monotonic() > deadline:
                raise ServiceFailed(f"not served {seconds:.0f} s after they were applied: {', '.join(sorted(waiting))}")
            if waiting:
                time.sleep(0.1)


def _is_established(definition: Object) -> bool:
    conditions: list[dict[str, str]] = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
