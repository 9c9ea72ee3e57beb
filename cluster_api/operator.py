"""Calls the reconcilers when objects change; kopf watches the objects."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

import kopf

from metal_ipi.cluster_api import metrics
from metal_ipi.cluster_api.api import CLUSTER, MACHINE, ApiError, Resource
from metal_ipi.cluster_api.clusters import NotUsable
from metal_ipi.cluster_api.engine.state import StateError
from metal_ipi.cluster_api.reconcilers.base import SOON, Hub, Reconciler
from metal_ipi.cluster_api.reconcilers.config import ConfigReconciler
from metal_ipi.cluster_api.reconcilers.control_plane import ControlPlaneReconciler
from metal_ipi.cluster_api.reconcilers.facility import FacilityReconciler
from metal_ipi.cluster_api.reconcilers.machine import MachineReconciler
from metal_ipi.cluster_api.reconcilers.remediation import RemediationReconciler

FINALIZER = "metal-ipi.cluster.x-k8s.io/finalizer"
_PREFIX = "metal-ipi.cluster.x-k8s.io"
_logger = logging.getLogger(__name__)


class _Bell:
    """Wakes all waiting handlers: an object of a cluster changed, or a step ended."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return


class Operator:
    """The handlers of one process."""

    def __init__(self, hub: Hub) -> None:
        self._bell = _Bell()
        hub.clusters.ring = self._bell.ring
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
        for resource in (CLUSTER, MACHINE, *(each.resource for each in self._reconcilers)):
            kopf.on.event(*_selector(resource), registry=found)(self._changed)
        return found

    async def _changed(self, **_: Any) -> None:
        self._bell.ring()

    def _register(self, registry: kopf.OperatorRegistry, reconciler: Reconciler) -> None:
        kind = reconciler.resource.kind

        async def work(namespace: str | None, name: str, stopped: Any, **_: Any) -> None:
            while not stopped:
                await self._bell.wait(await self._look(reconciler, namespace or "", name))

        async def end(namespace: str | None, name: str, **_: Any) -> None:
            while True:
                try:
                    if await reconciler.gone(namespace or "", name):
                        return
                except (ApiError, StateError, NotUsable) as error:
                    _logger.warning("%s %s/%s cannot be deleted yet: %s", kind, namespace, name, error)
                await self._bell.wait(SOON)

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
            return SOON * 5
        finally:
            metrics.LOOKS.labels(kind).observe(time.monotonic() - began)


def _selector(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural


async def _configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.finalizer = FINALIZER
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=_PREFIX)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=_PREFIX)
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
