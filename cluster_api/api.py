"""The management cluster's API: objects as plain trees, asked for in threads by the official client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from prometheus_client import Counter

from metal_ipi.provider.errors import ProviderError

Object = dict[str, Any]
MANAGER = "metal-ipi-cluster-api"
"""The field manager of what is written here."""
_TYPES = {"merge": "application/merge-patch+json", "apply": "application/apply-patch+yaml"}
_CALLS = 32
"""How many calls may be under way at once."""
_REQUESTS = Counter("metal_ipi_api_requests", "Requests to the management cluster, without watches", ["method"])


class ApiError(ProviderError):
    """The API refused something, or did not answer; `status` is HTTP's, 0 without an answer."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Where objects of a kind are."""

    group: str
    """Empty: the core group."""
    version: str
    kind: str
    plural: str

    @property
    def api_version(self) -> str:
        """As objects say it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of an object; of all objects of a namespace where `name` is empty, of all where both are.

        Raises ApiError for a name that would lead to another path: HTTP clients resolve `..`. The rule is Kubernetes'
        own (IsValidPathSegmentName in k8s.io/apimachinery, pkg/api/validation/path/name.go).
        """
        for each in (namespace, name):
            if each in (".", "..") or "/" in each or "%" in each:
                raise ApiError(f"'{each}' is not the name of an object ({self.kind})", 0)
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{within}/{self.plural}" + "".join(f"/{part}" for part in (name, subresource) if part)


SECRET = Resource(group="", version="v1", kind="Secret", plural="secrets")
LEASE = Resource(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases")
CLUSTER = Resource(group="cluster.x-k8s.io", version="v1beta2", kind="Cluster", plural="clusters")
MACHINE = Resource(group="cluster.x-k8s.io", version="v1beta2", kind="Machine", plural="machines")
MACHINE_SET = Resource(group="cluster.x-k8s.io", version="v1beta2", kind="MachineSet", plural="machinesets")
MACHINE_DEPLOYMENT = Resource(
    group="cluster.x-k8s.io", version="v1beta2", kind="MachineDeployment", plural="machinedeployments"
)


class Api:
    """Calls raise ApiError. Each has threads of its own: a call never waits for other work of this process."""

    def __init__(self, kubeconfig: str | None = None) -> None:
        """`kubeconfig` is a path; None: the account of the pod that this runs in. Raises ApiError for a wrong file."""
        self._threads = ThreadPoolExecutor(_CALLS, thread_name_prefix="kubernetes")
        configuration = client.Configuration()
        if kubeconfig is None:
            config.load_incluster_config(configuration)
        else:
            try:
                config.load_kube_config(kubeconfig, client_configuration=configuration)
            except (config.ConfigException, yaml.YAMLError, TypeError, ValueError, OSError) as error:
                why = " ".join(str(error).split())
                raise ApiError(f"{kubeconfig} is not a kubeconfig that can be used: {why}", 0) from None
        cast(Any, configuration).retries = False
        configuration.connection_pool_maxsize = _CALLS
        self._client = client.ApiClient(configuration)
        self.wrote: Callable[[str, str, str], None] = _nobody
        """Called with kind, namespace and name of each object that was written, or may have been."""

    async def get(self, kind: Resource, namespace: str, name: str) -> Object | None:
        """An object; None where there is none."""
        try:
            return await self._call("GET", kind.path(namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, kind: Resource, namespace: str, labels: str = "") -> list[Object]:
        """The objects of a namespace that have these labels, `a=b,c`."""
        query = [("labelSelector", labels)] if labels else []
        found = (await self._call("GET", kind.path(namespace), query=query)).get("items") or []
        return [{"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in found]

    async def create(self, kind: Resource, namespace: str, body: Mapping[str, Any]) -> Object | None:
        """Create an object; None if there is one of its name."""
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        try:
            return await self._write("POST", kind, namespace, body["metadata"]["name"], whole)
        except ApiError as error:
            if error.status == 409:
                return None
            raise

    async def apply(
        self,
        kind: Resource,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        subresource: str = "",
        *,
        manager: str = MANAGER,
    ) -> Object:
        """Create or change an object (server-side apply). Fields that this manager set before, and does not set now,
        are removed."""
        metadata = {**(body.get("metadata") or {}), "name": name, "namespace": namespace}
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **body, "metadata": metadata}
        query = [("fieldManager", manager), ("force", "true")]
        return await self._write(
            "PATCH", kind, namespace, name, whole, subresource=subresource, query=query, form="apply"
        )

    async def patch(
        self, kind: Resource, namespace: str, name: str, body: Mapping[str, Any], subresource: str = ""
    ) -> Object | None:
        """Merge into an object; None if it does not exist any more."""
        try:
            return await self._write("PATCH", kind, namespace, name, body, subresource=subresource, form="merge")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def replace(self, kind: Resource, namespace: str, body: Mapping[str, Any]) -> Object | None:
        """Write an object that was read; None where it has changed since."""
        try:
            return await self._write("PUT", kind, namespace, body["metadata"]["name"], body)
        except ApiError as error:
            if error.status in (404, 409):
                return None
            raise

    async def delete(self, kind: Resource, namespace: str, name: str) -> None:
        """Delete an object. A missing object is not an error."""
        try:
            await self._write("DELETE", kind, namespace, name)
        except ApiError as error:
            if error.status != 404:
                raise

    async def _write(
        self,
        method: str,
        kind: Resource,
        namespace: str,
        name: str,
        body: Any = None,
        *,
        subresource: str = "",
        **how: Any,
    ) -> Object:
        path = kind.path(namespace) if method == "POST" else kind.path(namespace, name, subresource)
        try:
            return await self._call(method, path, body, **how)
        finally:
            self.wrote(kind.kind, namespace, name)

    async def _call(
        self, method: str, path: str, body: Any = None, *, query: Any = (), form: str | None = None
    ) -> Object:
        headers = {"Accept": "application/json", "Content-Type": _TYPES.get(form or "", "application/json")}
        call = cast(Any, self._client.call_api)
        _REQUESTS.labels(method).inc()
        try:
            asked = partial(
                call,
                path,
                method,
                query_params=list(query),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
                response_type="object",
                _return_http_data_only=True,
                _request_timeout=30,
            )
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, asked)
        except ApiException as error:
            raise ApiError(f"{method} {path}: {error.status} {_error_text(error)}", int(error.status or 0)) from None
        except Exception as error:  # urllib3's, which the client does not wrap
            raise ApiError(f"{method} {path}: {type(error).__name__}: {error}", 0) from None
        return cast(Object, answer)


def _nobody(kind: str, namespace: str, name: str) -> None:
    """For an `Api` without `Reads`."""


def micro_time() -> str:
    """The current time, as the fields of a Lease have it (apimachinery, MicroTime)."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def status_of(item: Object, kind: str, keys: Sequence[str] = ("status",)) -> tuple[str, ...]:
    """The status, or these fields, of an object's condition of a type; empty if there is none."""
    found: Sequence[Mapping[str, Any]] = (item.get("status") or {}).get("conditions") or []
    return next((tuple(str(each.get(key) or "") for key in keys) for each in found if each["type"] == kind), ())


def labels_of(item: Mapping[str, Any]) -> Mapping[str, str]:
    """An object's labels."""
    return item["metadata"].get("labels") or {}


def uid_of(item: Mapping[str, Any]) -> str:
    """An object's uid."""
    return str(item["metadata"]["uid"])


def owner_of(item: Mapping[str, Any], kind: str) -> str | None:
    """The name of the object's owner of a kind."""
    owners: Sequence[Mapping[str, Any]] = item["metadata"].get("ownerReferences") or []
    return next((str(each["name"]) for each in owners if each["kind"] == kind), None)


def _error_text(error: ApiException) -> str:
    try:
        return str(json.loads(error.body or "{}").get("message") or error.reason)
    except (ValueError, AttributeError):
        return str(error.reason)
