"""Metrics for Prometheus: number and duration of reconciliations, and steps of clusters."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import REGISTRY, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from metal_ipi.cluster_api.absences import Absences
from metal_ipi.cluster_api.clusters import Clusters
from metal_ipi.cluster_api.installations import Installations

LOOKS = Histogram("metal_ipi_reconcile_seconds", "Seconds that one reconciliation took", ["kind"])
ERRORS = Counter("metal_ipi_reconcile_errors", "Reconciliations that ended with an error", ["kind"])


class _OfClusters(Collector):
    def __init__(self, clusters: Clusters, absences: Absences, installations: Installations) -> None:
        self._clusters, self._absences, self._installations = clusters, absences, installations

    def collect(self) -> Iterable[GaugeMetricFamily]:
        engines = self._clusters.engines.values()
        gauges = (
            ("metal_ipi_clusters", "Clusters that are managed", len(self._clusters.engines)),
            ("metal_ipi_steps_running", "Steps in progress", sum(len(each.running(_any)) for each in engines)),
            ("metal_ipi_steps_failing", "Steps that failed", sum(len(each.failures(_any)) for each in engines)),
            ("metal_ipi_machines_away", "Machines that are away; 0 where there is no limit", self._absences.count),
            (
                "metal_ipi_clusters_installing",
                "Clusters that are being installed; 0 where there is no limit",
                self._installations.count,
            ),
            ("metal_ipi_clusters_waiting", "Clusters that wait until they may be", self._installations.waiting),
        )
        return [GaugeMetricFamily(name, what, value=value) for name, what, value in gauges]


def _any(name: str) -> bool:
    return True


def register(clusters: Clusters, absences: Absences, installations: Installations) -> None:
    """Registers the metrics of clusters."""
    REGISTRY.register(_OfClusters(clusters, absences, installations))
