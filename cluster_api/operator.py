"""Calls the reconcilers when objects change; kopf watches the objects."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import kopf

from metal_ipi.cluster_api import metrics
from metal_ipi.cluster_api.api import CLUSTER, MACHINE, ApiError, Object, Resource
from metal_ipi.cluster_api.clusters import ASSETS, NotUsable, cluster_name
from metal_ipi.cluster_api.engine.state import StateError
from metal_ipi.cluster_api.reconcilers.base import SOON, Hub, Reconciler
from metal_ipi.cluster_api.reconcilers.config import ConfigReconciler
from metal_ipi.cluster_api.reconcilers.control_plane import ControlPlaneReconciler
from metal_ipi.cluster_api.reconcilers.facility import FacilityReconciler
from metal_ipi.cluster_api.reconcilers.machine import MachineReconciler
from metal_ipi.cluster_api.reconcilers.remediation import RemediationReconciler
from metal_ipi.cluster_api.resources import OPENSHIFT_CONFIG

FINALIZER = "metal-ipi.cluster.x-k8s.io/finalizer"
_PREFIX = "metal-ipi.cluster.x-k8s.io"
_DATA = " data"
"""Added to a cluster's name: the bell of its OpenShiftConfigs, which few changes concern."""
_OF_DATA = frozenset({CLUSTER.kind, MACHINE.kind, OPENSHIFT_CONFIG.resource.kind})
_logger = logging.getLogger(__name__)


class Bells:
    """One for each cluster, and others by their names: wakes waiting handlers when an object of a cluster changed, or
    one of its steps ended."""

    def __init__(self) -> None:
        self._waited_for: dict[str, asyncio.Event] = {}
        self._rung: dict[str, int] = {}

    def rung(self, cluster: str) -> int:
        """How often a cluster's was rung."""
        return self._rung.get(cluster, 0)

    def ring(self, cluster: str) -> None:
        """Wake the handlers of a cluster, and those of its namespace whose cluster is not known yet."""
        for each in {cluster, unknown(cluster.partition("/")[0])}:
            self._rung[each] = self.rung(each) + 1
            if event := self._waited_for.pop(each, None):
                event.set()

    async def wait(self, cluster: str, seconds: float, *, since: int) -> None:
        """Wait until the cluster's was rung more often than `since`, but not longer."""
        if self.rung(cluster) != since:
            return
        event = self._waited_for.setdefault(cluster, asyncio.Event())
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            return


def unknown(namespace: str) -> str:
    """In the place of a cluster's name, for objects that say of none that they are its own."""
    return f"{namespace}/"


def cluster_of(item: Mapping[str, Any]) -> str:
    """`namespace/name` of the cluster that an object is of, or `unknown`."""
    namespace = item["metadata"]["namespace"]
    name = item["metadata"]["name"] if item["kind"] == CLUSTER.kind else cluster_name(item)
    return f"{namespace}/{name}" if name else unknown(namespace)


def essence(item: Mapping[str, Any]) -> list[Any]:
    """An object without messages, which steps in progress change all the time."""
    status: Mapping[str, Any] = item.get("status") or {}
    return [
        declared(item),
        {key: value for key, value in status.items() if key not in ("conditions", "deprecated")},
        [(each["type"], each["status"], each.get("reason")) for each in status.get("conditions") or ()],
    ]


def declared(item: Mapping[str, Any]) -> list[Any]:
    """An object without its status."""
    return [
        {key: value for key, value in item["metadata"].items() if key not in ("resourceVersion", "managedFields")},
        item.get("spec"),
    ]


class Changes:
    """Which events of objects matter: those that change a part of them."""

    def __init__(self, part: Callable[[Mapping[str, Any]], list[Any]] = essence) -> None:
        self._part = part
        self._seen: dict[str, int] = {}
        """What was seen last, by uid."""

    def matters(self, kind: str | None, item: Mapping[str, Any]) -> bool:
        """Whether an event does; `kind` is the API's: None for an object that was listed, `DELETED`."""
        uid = item["metadata"]["uid"]
        before = self._seen.pop(uid, None)
        if kind == "DELETED":
            return True
        now = self._seen[uid] = hash(json.dumps(self._part(item), sort_keys=True))
        return now != before


class _NoDifferences(kopf.DiffBaseStorage):
    """No handler asks what changed in an object: kopf keeps no copy of it in its annotations, and compares nothing."""

    def build(self, *, body: kopf.Body, extra_fields: object = None) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        return


class Operator:
    """The handlers of one process."""

    def __init__(self, hub: Hub) -> None:
        self._clusters, self._reads, self._bells = hub.clusters, hub.reads, Bells()
        self._changes, self._declared = Changes(), Changes(declared)
        hub.clusters.ring = self._step_ended
        self._reconcilers: Sequence[Reconciler] = (
            FacilityReconciler(hub),
            MachineReconciler(hub),
            RemediationReconciler(hub),
            ConfigReconciler(hub),
            ControlPlaneReconciler(hub),
        )

    def registry(self, *, in_pod: bool) -> kopf.OperatorRegistry:
        """What kopf is to call. It logs in by the pod's account, or by the kubeconfig that KUBECONFIG names."""
        found = kopf.OperatorRegistry()
        kopf.on.login(registry=found)(kopf.login_with_service_account if in_pod else kopf.login_with_kubeconfig)
        kopf.on.startup(registry=found)(_configure)
        for reconciler in self._reconcilers:
            self._register(found, reconciler)
        watched = CLUSTER, MACHINE, *(each.resource for each in self._reconcilers)
        self._reads.watched = frozenset(each.kind for each in watched)
        for resource in watched:
            kopf.on.event(*_selector(resource), registry=found)(self._changed)
        return found

    async def _changed(self, type: str | None, event: kopf.RawEvent, **_: Any) -> None:
        item = cast("Object", event["object"])
        self._reads.saw(item, gone=type == "DELETED")
        data = item["kind"] in _OF_DATA and self._declared.matters(type, item)
        if self._changes.matters(type, item):
            self._ring(cluster_of(item), data=data)

    def _step_ended(self, cluster: str, step: str) -> None:
        self._ring(cluster, data=step == ASSETS)

    def _ring(self, cluster: str, *, data: bool) -> None:
        self._clusters.forget(cluster)
        self._bells.ring(cluster)
        if data:
            self._bells.ring(f"{cluster}{_DATA}")

    def _register(self, registry: kopf.OperatorRegistry, reconciler: Reconciler) -> None:
        kind = reconciler.resource.kind

        async def work(namespace: str | None, name: str, stopped: Any, body: kopf.Body, **_: Any) -> None:
            while not stopped:
                bell = _bell(reconciler, cluster_of(body))  # kopf keeps `body` as it is on the hub
                since = self._bells.rung(bell)
                seconds = await self._look(reconciler, namespace or "", name)
                await self._bells.wait(bell, seconds, since=since)

        async def end(namespace: str | None, name: str, body: kopf.Body, **_: Any) -> None:
            while True:
                since = self._bells.rung(cluster := cluster_of(body))
                try:
                    if await reconciler.gone(namespace or "", name):
                        return
                except (ApiError, StateError, NotUsable) as error:
                    _logger.warning("%s %s/%s cannot be deleted yet: %s", kind, namespace, name, error)
                await self._bells.wait(cluster, SOON, since=since)

        where = _selector(reconciler.resource)
        kopf.daemon(*where, registry=registry, id="work", cancellation_timeout=5.0, cancellation_backoff=0.5)(work)
        kopf.on.delete(*where, registry=registry, id="end")(end)

    async def _look(self, reconciler: Reconciler, namespace: str, name: str) -> float:
        kind, began = reconciler.resource.kind, time.monotonic()
        try:
            return await reconciler.reconcile(namespace, name)
        except (ApiError, StateError) as error:
            metrics.ERRORS.labels(kind).inc()
            _logger.warning("%s %s/%s: %s", kind, namespace, name, error)
            return SOON
        except Exception:
            metrics.ERRORS.labels(kind).inc()
            _logger.exception("%s %s/%s", kind, namespace, name)
            return SOON * 2
        finally:
            metrics.LOOKS.labels(kind).observe(time.monotonic() - began)


def _bell(reconciler: Reconciler, cluster: str) -> str:
    return f"{cluster}{_DATA}" if isinstance(reconciler, ConfigReconciler) else cluster


def _selector(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural


async def _configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.finalizer = FINALIZER
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=_PREFIX)
    settings.persistence.diffbase_storage = _NoDifferences()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
