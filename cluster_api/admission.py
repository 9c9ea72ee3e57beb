"""The admission webhook: it refuses, when an object is written, what the reconcilers would refuse later.

It refuses a MetalIpiCluster whose settings, failure domains or servers are wrong, and lists all problems. If a problem
depends on other objects, which may be written a moment later, it only warns: the reconcilers report it in conditions.

Every process serves it, also one that does not hold the Lease. The certificate is read again when its file changes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from metal_ipi.cluster_api import settings
from metal_ipi.cluster_api.api import Api, ApiError, Object
from metal_ipi.cluster_api.clusters import (
    Clusters,
    NotUsable,
    problems_text,
    read,
    refuse_another_name,
    refuse_domains,
    refuse_without_servers,
    secrets_of,
    servers_of,
)
from metal_ipi.cluster_api.engine.state import StateError
from metal_ipi.cluster_api.manifests import UNKNOWN
from metal_ipi.cluster_api.reconcilers import control_plane
from metal_ipi.cluster_api.resources import METAL_IPI_CLUSTER, OPENSHIFT_CONTROL_PLANE
from metal_ipi.cluster_api.store import SecretStore
from metal_ipi.stacks.problems import SettingsError
from metal_ipi.stacks.settings import Settings

PATH, READY_PATH = "/validate", "/readyz"
_LARGEST = 8 * 1024 * 1024
"""Bytes of a request: it has two versions of an object, each of 1.5 MB at most, which is what etcd takes."""
_LOOK_SECONDS = 10.0
"""Seconds between checks whether the certificate has changed."""
_logger = logging.getLogger(__name__)


class Admission:
    """Answers AdmissionReviews (admission.k8s.io/v1)."""

    def __init__(self, api: Api) -> None:
        self._api, self._clusters = api, Clusters(api)

    async def review(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a request of an AdmissionReview. Raises ApiError, StateError."""
        item: Object = request["object"]
        refused, warnings = "", list[str]()
        try:
            if item["kind"] == METAL_IPI_CLUSTER.resource.kind:
                warnings = await self._facility(item)
            elif item["kind"] == OPENSHIFT_CONTROL_PLANE.resource.kind:
                warnings = await self._control_plane(item)
        except NotUsable as error:
            refused = str(error)
        answer: dict[str, Any] = {"uid": request["uid"], "allowed": not refused, "warnings": warnings}
        return {**answer, "status": {"code": 422, "reason": "Invalid", "message": refused}} if refused else answer

    async def _facility(self, item: Object) -> list[str]:
        """Returns warnings. Raises NotUsable, ApiError, StateError."""
        warnings = list[str]()
        secrets: dict[str, str] | None = None
        try:
            secrets = await secrets_of(self._api, item)
        except NotUsable as error:
            warnings.append(f"{error}: settings that are secret or missing are checked later")
        valid = await asyncio.to_thread(_checked, item, secrets)
        refuse_domains(item, servers_of(valid))
        cluster = await self._clusters.cluster_of(item, self._api)
        if cluster is not None:
            refuse_another_name(valid, cluster)
            store = SecretStore(self._api, item, str(cluster["metadata"]["name"]))
            refuse_without_servers(await store.load(), valid)
        return warnings

    async def _control_plane(self, item: Object) -> list[str]:
        """Returns warnings. Raises ApiError."""
        cluster = await self._clusters.cluster_of(item, self._api)
        reference: Mapping[str, Any] = ((cluster or {}).get("spec") or {}).get("infrastructureRef") or {}
        if cluster is None or not reference.get("name"):
            return []
        found = await self._api.get(METAL_IPI_CLUSTER.resource, cluster["metadata"]["namespace"], reference["name"])
        release = ((found or {}).get("spec") or {}).get("settings", {}).get("openshiftVersion")
        try:
            if release is not None:
                control_plane.refuse(item, str(release))
        except NotUsable as error:
            return [str(error)]
        return []


def _checked(facility: Object, secrets: Mapping[str, str] | None) -> Settings:
    """The settings of a MetalIpiCluster. Without the secrets (None) they are checked as a preview without credentials
    checks them. Raises NotUsable with all that is wrong."""
    try:
        if secrets is not None:
            return read(facility["spec"], secrets, UNKNOWN)[1]
        tree = UNKNOWN.added(settings.merged(facility["spec"].get("settings") or {}, {}))
        return settings.validated({**tree, "rehearsal": True})
    except SettingsError as error:
        raise NotUsable("SettingsRefused", problems_text(error)) from None


async def serve(admission: Admission, certificates: Path, port: int, address: str | None = None) -> None:
    """Answer requests until the process ends.

    Args:
        certificates: a directory with `tls.crt` and `tls.key`, as a volume of a Secret of type kubernetes.io/tls.
        address: None: all addresses.
    Raises OSError where the certificate cannot be read or the port is taken, and ssl.SSLError.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    seen = _load(context, certificates)
    application = web.Application(client_max_size=_LARGEST)
    application.router.add_post(PATH, lambda request: _answer(admission, request))
    application.router.add_get(READY_PATH, _ready)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, address, port, ssl_context=context).start()
    try:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                if _changed(certificates) != seen:
                    seen = _load(context, certificates)
            except OSError as error:  # ssl.SSLError is one, too
                _logger.warning("the webhook's certificate cannot be renewed yet: %s", error)
    finally:
        await runner.cleanup()


def _changed(certificates: Path) -> tuple[int, ...]:
    return tuple((certificates / name).stat().st_mtime_ns for name in ("tls.crt", "tls.key"))


def _load(context: ssl.SSLContext, certificates: Path) -> tuple[int, ...]:
    """Use the current certificate for new connections. Returns the time of its last change."""
    seen = _changed(certificates)
    context.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
    return seen


async def _ready(_: web.Request) -> web.Response:
    """For the probe of a pod: a Service sends requests only to pods that answer them."""
    return web.Response(text="ok")


async def _answer(admission: Admission, request: web.Request) -> web.Response:
    try:
        review = json.loads(await request.read())
        asked = review["request"]
        response = await admission.review(asked)
    except (ValueError, KeyError, TypeError) as error:
        return web.Response(status=400, text=f"this is not an AdmissionReview of admission.k8s.io/v1: {error!r}")
    except (ApiError, StateError) as error:
        _logger.warning("an object cannot be checked: %s", error)
        return web.Response(status=503, text=str(error))
    return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
