"""The API server, through the official Python client.

    ApiError                 it answered, and refused
    ├── Conflict             somebody else owns a field
    └── KindUnknown          it does not serve the kind (yet)
    Unreachable              it did not answer

The client is used for what it knows best: kubeconfigs, credentials, requests. Its models are of no use here, since the
objects are whatever the program wrote. It blocks, so each request has a thread. It is imported with the first request:
a preview that has no cluster yet does without.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from lab.plugins.base import NotInTheLab, PluginError
from lab.plugins.kubernetes.inputs import Settings
from lab.plugins.kubernetes.objects import Object, title
from lab.plugins.values import Json

TIMEOUT_SECONDS = (5, 30)
"""To connect, and between two bytes of an answer."""

RETRIES = 4
_RETRIED = (429, 502, 503, 504)
_FILES = {"certificate-authority-data": "certificate-authority"}
_USER_FILES = {"client-certificate-data": "client-certificate", "client-key-data": "client-key"}
_APPLY = "application/apply-patch+yaml"


class Unreachable(PluginError):
    """There is no cluster to ask, or it does not answer."""


class ApiError(PluginError):
    """The API server refuses; `status` is HTTP's, `reason` one of Kubernetes' words."""

    def __init__(self, message: str, status: int, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Conflict(ApiError):
    """Somebody else owns a field that is to be applied."""


class KindUnknown(ApiError):
    """The API server does not serve the kind."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """Where the API server keeps a kind."""

    base: str
    """`/api/v1` or `/apis/<group>/<version>`."""
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str) -> str:
        """The path of one object."""
        where = f"/namespaces/{urllib.parse.quote(namespace)}" if self.namespaced else ""
        return f"{self.base}{where}/{self.plural}/{urllib.parse.quote(name)}"


class Client:
    """One cluster, once it is configured."""

    def __init__(self) -> None:
        self._settings = Settings()
        self._api: Any = None
        self._namespace = "default"
        self._routes: dict[tuple[str, str], Route] = {}
        self._opening = asyncio.Lock()

    def configure(self, settings: Settings) -> None:
        """Takes the settings; the cluster is met with the first request."""
        self._settings, self._api = settings, None
        self._routes.clear()

    @property
    def settings(self) -> Settings:
        """The provider's configuration."""
        return self._settings

    async def close(self) -> None:
        """Let go of connections."""
        if self._api is not None:
            self._api.rest_client.pool_manager.clear()

    async def get(self, document: Object) -> Object | None:
        """The live object, None where there is none."""
        try:
            return await self._request("GET", await self._path(document))
        except ApiError as error:
            if error.status == 404:
                return None
            raise _named(error, document, "cannot be read") from None

    async def apply(self, document: Object, manager: str, *, force: bool, dry_run: bool = False) -> Object:
        """Server-side apply; the object as it then is. Raises Conflict, KindUnknown, ApiError."""
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        try:
            return await self._request("PATCH", await self._path(document), query, document, _APPLY)
        except ApiError as error:
            raise _named(error, document, "is refused") from None

    async def delete(self, document: Object, uid: str, policy: str) -> None:
        """Have it deleted if it is still the one of this uid. Raises ApiError with status 409 if it is not."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy, "preconditions": {"uid": uid}}
        try:
            await self._request("DELETE", await self._path(document), {}, body)
        except ApiError as error:
            if error.status != 404:
                raise _named(error, document, "cannot be deleted") from None

    async def placed(self, document: Object) -> Object:
        """The object with the namespace that it is in; none for kinds that are in no namespace."""
        route = await self._route(document["apiVersion"], document["kind"])
        metadata = dict(document["metadata"])
        if route.namespaced:
            metadata["namespace"] = metadata.get("namespace") or self._namespace
        elif metadata.pop("namespace", None):
            raise PluginError(f"{document['kind']} {metadata['name']} is in no namespace: remove metadata.namespace")
        return {**document, "metadata": metadata}

    async def _path(self, document: Object) -> str:
        route = await self._route(document["apiVersion"], document["kind"])
        metadata = document["metadata"]
        return route.path(metadata.get("namespace") or self._namespace, metadata["name"])

    async def _route(self, api_version: str, kind: str) -> Route:
        found = self._routes.get((api_version, kind))
        if found is not None:
            return found
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            resources: list[Object] = (await self._request("GET", base))["resources"]
        except ApiError as error:
            if error.status != 404:
                raise
            resources = []
        for each in resources:
            if each["kind"] == kind and "/" not in each["name"]:
                route = Route(base=base, plural=each["name"], namespaced=each["namespaced"])
                self._routes[api_version, kind] = route
                return route
        raise KindUnknown(
            f"the cluster does not know {kind} of {api_version}: what defines it (its CustomResourceDefinition) is not"
            " installed, or not yet",
            404,
            "KindUnknown",
        )

    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json = None,
        content_type: str = "application/json",
    ) -> Object:
        async with self._opening:
            if self._api is None:
                self._api = await asyncio.to_thread(self._open)
        headers = {"Accept": "application/json", "Content-Type": content_type}
        return await asyncio.to_thread(self._send, method, path, dict(query or {}), headers, body)

    def _send(self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: Json) -> Object:
        import urllib3.exceptions
        from kubernetes.client.exceptions import ApiException

        try:
            return self._api.call_api(
                path,
                method,
                query_params=list(query.items()),
                header_params=headers,
                body=body,
                response_type="object",
                auth_settings=["BearerToken"],
                _return_http_data_only=True,
                _request_timeout=TIMEOUT_SECONDS,
            )
        except ApiException as error:
            if not error.status:  # the client's way of telling that TLS failed
                raise self._unreachable(str(error.reason)) from None
            raise _refusal(error.status, str(error.reason), error.body) from None
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(str(getattr(error, "reason", None) or error)) from None

    def _unreachable(self, why: str) -> Unreachable:
        return Unreachable(f"the cluster at {self._api.configuration.host} does not answer: {' '.join(why.split())}")

    def _open(self) -> Any:
        """The official client, set up from the kubeconfig. Files with keys exist for a moment only."""
        import urllib3
        from kubernetes import config as kubeconfigs
        from kubernetes.config.config_exception import ConfigException

        document = _kubeconfig(self._settings.kubeconfig)
        with tempfile.TemporaryDirectory(prefix="kubeconfig-") as directory:
            _in_files(document, Path(directory))
            try:
                api = kubeconfigs.new_client_from_config_dict(
                    document, context=self._settings.context, persist_config=False
                )
            except (ConfigException, TypeError, ValueError, KeyError) as error:
                raise PluginError(f"the provider's kubeconfig cannot be used: {error}") from None
            settings = api.configuration
            if not settings.verify_ssl:
                raise NotInTheLab("kubernetes", "a cluster whose certificate is not verified")
            context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
            if settings.cert_file:
                context.load_cert_chain(settings.cert_file, settings.key_file)
        options = {"server_hostname": settings.tls_server_name} if settings.tls_server_name else {}
        retries = urllib3.Retry(
            RETRIES,
            connect=1,
            status_forcelist=_RETRIED,
            allowed_methods=None,
            backoff_factor=0.3,
            raise_on_status=False,
        )

        class Pool(urllib3.PoolManager):
            """The client asks a refusal for its headers in a way that urllib3 warns of."""

            def request(self, *arguments: Any, **named: Any) -> Any:
                response: Any = super().request(*arguments, **named)
                response.getheaders = lambda: response.headers
                return response

        api.rest_client.pool_manager = Pool(ssl_context=context, retries=retries, maxsize=8, **options)
        self._namespace = self._settings.namespace or _namespace(document, self._settings.context)
        return api


def _kubeconfig(text: str) -> Object:
    """The document: given as text, or as the path of a file."""
    if not text:
        raise Unreachable("the provider has no kubeconfig: set it to that of the cluster")
    if "\n" not in text and not text.lstrip().startswith("{"):
        try:
            text = Path(text).expanduser().read_text()
        except OSError as error:
            raise PluginError(f"the provider's kubeconfig is no document and no file: {error.strerror}") from None
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        raise PluginError("the provider's kubeconfig is no YAML document") from None
    if not isinstance(document, dict) or not cast("Object", document).get("clusters"):
        raise PluginError("the provider's kubeconfig names no cluster")
    return cast("Object", document)


def _in_files(document: Object, directory: Path) -> None:
    """Certificates and keys as files: else the client would write them itself, and keep them until it ends well."""
    parts = [(each.get("cluster"), _FILES) for each in document["clusters"]]
    parts += [(each.get("user"), _USER_FILES) for each in document.get("users") or []]
    for number, (part, names) in enumerate(parts):
        for data, name in names.items():
            if part and data in part:
                path = directory / f"{number}-{name}"
                path.write_bytes(base64.b64decode(part.pop(data)))
                part[name] = str(path)


def _namespace(document: Object, context: str | None) -> str:
    name = context or document.get("current-context")
    found = [each.get("context") or {} for each in document.get("contexts") or [] if each.get("name") == name]
    return str(found[0].get("namespace") or "default") if found else "default"


def _refusal(status: int, reason: str, body: str | bytes | None) -> ApiError:
    """What the API server says, in one sentence."""
    try:
        told: Object = json.loads(body or "{}")
    except ValueError:
        told = {}
    message, word = str(told.get("message") or reason), str(told.get("reason") or "")
    causes: list[Object] = (told.get("details") or {}).get("causes") or []
    owners = [each for each in causes if each.get("reason") == "FieldManagerConflict"]
    if status == 409 and owners:
        listed = "; ".join(f"{each.get('field', '').lstrip('.')}: {each.get('message')}" for each in owners)
        return Conflict(
            f"others own what is to be changed ({listed}). Leave it out of the program, have them let go of it, or"
            ' take it over with the annotation pulumi.com/patchForce: "true"',
            status,
            word,
        )
    return ApiError(message, status, word)


def _named(error: ApiError, document: Object, what: str) -> ApiError:
    """The same, saying which object it is about."""
    if isinstance(error, KindUnknown):
        return error
    return type(error)(f"{title(document)} {what}: {error}", error.status, error.reason)
