"""The API server over HTTPS. httpx is imported at the first use: a preview that has no cluster yet does without.

ApiError                 it answered, and refused
├── Conflict             somebody else owns a field
└── KindUnknown          it does not serve the kind (yet)
Unreachable              it did not answer
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from lab.plugins.base import NotInTheLab, PluginError
from lab.plugins.kubernetes.inputs import Settings
from lab.plugins.kubernetes.objects import Object, title
from lab.plugins.values import Json

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
RETRIES = 4
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.3, 30.0
_CONTROLLED = ("Deployment", "StatefulSet", "Job")
_LONGEST_MESSAGE = 1000
_RETRIED = (429, 502, 503, 504)
_DATA = ("certificate-authority-data", "client-certificate-data", "client-key-data")


class Unreachable(PluginError):
    """There is no cluster to ask, or it does not answer."""


class ApiError(PluginError):
    """The API server refuses; `status` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Conflict(ApiError):
    """Somebody else owns a field that is to be applied."""


class KindUnknown(ApiError):
    """The API server does not serve the kind."""


class Client:
    """One cluster, once it is configured."""

    def __init__(self) -> None:
        self.settings = Settings()
        self._http: httpx.AsyncClient | None = None
        self._server_name: str | None = None
        self._routes: dict[tuple[str, str], tuple[str, bool]] = {}
        """By API version and kind: `/apis/<group>/<version>` and plural, and whether its objects have a namespace."""

    async def close(self) -> None:
        """Let go of connections."""
        if self._http is not None:
            await self._http.aclose()

    async def get(self, document: Object) -> Object | None:
        """The live object, None where there is none."""
        try:
            if document["kind"] == "PodList":
                where = f"/api/v1/namespaces/{urllib.parse.quote(document['metadata']['namespace'])}/pods"
                return await self._request("GET", where, {"labelSelector": document["selector"]})
            return await self._request("GET", await self._path(document))
        except ApiError as error:
            if error.status == 404 and not isinstance(error, KindUnknown):
                return None
            raise _named(error, document, "cannot be read") from None

    async def apply(self, document: Object, manager: str, *, force: bool, dry_run: bool = False) -> Object:
        """Server-side apply; the object as it then is. Raises Conflict, KindUnknown, ApiError."""
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        query |= {"dryRun": "All"} if dry_run else {}
        try:
            return await self._request("PATCH", await self._path(document), query, document)
        except ApiError as error:
            raise _named(error, document, "is refused") from None

    async def delete(self, document: Object, uid: str) -> None:
        """Have it deleted if it is still the one of this uid. Raises ApiError with status 409 if it is not.

        What a controller made of it goes first, where there are controllers; the API of the lab's clusters has none.
        """
        policy = "Foreground" if document["kind"] in _CONTROLLED else "Background"
        body = {"kind": "DeleteOptions", "propagationPolicy": policy, "preconditions": {"uid": uid}}
        try:
            await self._request("DELETE", await self._path(document), body={"apiVersion": "v1", **body})
        except ApiError as error:
            if error.status != 404:
                raise _named(error, document, "cannot be deleted") from None

    async def placed(self, document: Object) -> Object:
        """The object with the namespace that it is in; none for kinds that are in no namespace."""
        _, namespaced = await self._route(document["apiVersion"], document["kind"])
        metadata = dict(document["metadata"])
        if namespaced:
            metadata["namespace"] = metadata.get("namespace") or "default"
        elif metadata.pop("namespace", None):
            raise PluginError(f"{document['kind']} {metadata['name']} is in no namespace: remove metadata.namespace")
        return {**document, "metadata": metadata}

    async def _path(self, document: Object) -> str:
        where, namespaced = await self._route(document["apiVersion"], document["kind"])
        base, _, plural = where.rpartition("/")
        metadata = document["metadata"]
        namespace = f"/namespaces/{urllib.parse.quote(metadata.get('namespace') or 'default')}" if namespaced else ""
        return f"{base}{namespace}/{plural}/{urllib.parse.quote(metadata['name'])}"

    async def _route(self, api_version: str, kind: str) -> tuple[str, bool]:
        if (api_version, kind) in self._routes:
            return self._routes[api_version, kind]
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            resources: list[Object] = (await self._request("GET", base))["resources"]
        except ApiError as error:
            if error.status != 404:
                raise
            resources = []
        for each in resources:
            if each["kind"] == kind and "/" not in each["name"]:
                self._routes[api_version, kind] = f"{base}/{each['name']}", each["namespaced"]
                return self._routes[api_version, kind]
        raise KindUnknown(
            f"the cluster does not know {kind} of {api_version}: what defines it (its CustomResourceDefinition) is not"
            " installed, or not yet",
            404,
        )

    async def _request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Json = None
    ) -> Object:
        """Repeated with back-off where it was not answered, or the answer asks for it: all of this API's requests that
        are made here may be repeated."""
        import httpx

        if self._http is None:
            self._http, self._server_name = _open(self.settings.kubeconfig)
        headers = {"Content-Type": "application/apply-patch+yaml" if method == "PATCH" else "application/json"}
        extensions = {"sni_hostname": self._server_name} if self._server_name else {}
        for attempt in range(RETRIES + 1):
            wait = FIRST_WAIT_SECONDS * 2**attempt
            try:
                content = None if body is None else json.dumps(body)
                answer = await self._http.request(
                    method, path, params=query, content=content, headers=headers, extensions=extensions
                )
            except httpx.HTTPError as error:
                if attempt == RETRIES or (attempt and isinstance(error, httpx.ConnectError)):
                    why = " ".join(str(error).split()) or type(error).__name__
                    where = str(self._http.base_url).rstrip("/")
                    raise Unreachable(f"the cluster at {where} does not answer: {why}") from None
            else:
                if answer.is_success:
                    return answer.json()
                if attempt == RETRIES or answer.status_code not in _RETRIED:
                    raise _refusal(answer.status_code, answer.reason_phrase, answer.content)
                told = answer.headers.get("Retry-After", "")
                wait = min(float(told), LONGEST_WAIT_SECONDS) if told.isdecimal() else wait
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def _open(text: str) -> tuple[httpx.AsyncClient, str | None]:
    """A client as the kubeconfig says, and the name in the server's certificate if it is another.

    Raises Unreachable without a kubeconfig, PluginError for one that cannot be used.
    """
    import httpx

    cluster, user = _current(text)
    try:
        cadata, certificate, key = (base64.b64decode({**cluster, **user}.get(name) or "").decode() for name in _DATA)
        context = ssl.create_default_context(cadata=cadata or None)
        if certificate:
            with tempfile.NamedTemporaryFile("w", prefix="kubeconfig-") as file:  # ssl reads keys from files only
                Path(file.name).write_text(f"{certificate}\n{key}")
                context.load_cert_chain(file.name)
    except (ValueError, OSError) as error:
        raise PluginError(f"the provider's kubeconfig cannot be used: {error}") from None
    bearer = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    opened = httpx.AsyncClient(
        base_url=cluster["server"],
        verify=context,
        headers={"Accept": "application/json", **bearer},
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        trust_env=False,
    )
    return opened, cluster.get("tls-server-name")


def _current(text: str) -> tuple[Object, Object]:
    """Cluster and user of the kubeconfig's current context."""
    if not text:
        raise Unreachable("the provider has no kubeconfig: set it to that of the cluster")
    try:
        document: Any = yaml.safe_load(text)
    except yaml.YAMLError:
        raise PluginError("the provider's kubeconfig is not a YAML document") from None
    if not isinstance(document, dict) or not cast("Object", document).get("clusters"):
        raise PluginError("the provider's kubeconfig names no cluster")
    whole = cast("Object", document)

    def named(part: str, name: Json) -> Object:
        found = [each.get(part) or {} for each in whole.get(f"{part}s") or [] if each.get("name") == name]
        if not found:
            raise PluginError(f"the provider's kubeconfig cannot be used: it has no {part} {name}")
        return found[0]

    context = named("context", whole.get("current-context"))
    cluster, user = named("cluster", context.get("cluster")), named("user", context.get("user"))
    for name in (*(cluster.keys() - {"server", "tls-server-name", _DATA[0]}), *(user.keys() - {"token", *_DATA[1:]})):
        raise NotInTheLab("kubernetes", f"a kubeconfig with {name}")
    return cluster, user


def _refusal(status: int, reason: str, body: bytes) -> ApiError:
    """What the API server says, in one sentence."""
    try:
        told: Object = json.loads(body or "{}")
    except ValueError:
        told = {}
    causes: list[Object] = (told.get("details") or {}).get("causes") or []
    owners = [each for each in causes if each.get("reason") == "FieldManagerConflict"]
    if status == 409 and owners:
        listed = "; ".join(f"{each.get('field', '').lstrip('.')}: {each.get('message')}" for each in owners)
        return Conflict(
            f"others own what is to be changed ({listed}). Leave it out of the program, have them let go of it, or"
            ' take it over with the annotation pulumi.com/patchForce: "true"',
            status,
        )
    return ApiError(_shortened(str(told.get("message") or reason)), status)


def _shortened(message: str) -> str:
    """A message without the middle of it where it quotes a whole object; what is wrong stands at its ends."""
    half = _LONGEST_MESSAGE // 2
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:half]} ... {message[-half:]}"


def _named(error: ApiError, document: Object, what: str) -> ApiError:
    """The same, saying which object it is about."""
    if isinstance(error, KindUnknown):
        return error
    return type(error)(f"{title(document)} {what}: {error}", error.status)
