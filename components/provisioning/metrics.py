"""Metrics for Prometheus: measurements of BMCs, and statistics of conductors, by ironic-prometheus-exporter.

Each conductor reports its own servers and itself. Ironic passes measurements to the exporter's notification driver,
which keeps one file for each server; a web server beside the conductor serves them at /metrics.
"""

from __future__ import annotations

from metal_ipi.components.provisioning import objects
from metal_ipi.components.provisioning.contract import METRICS_PORT, IronicArgs, Metrics
from metal_ipi.components.provisioning.objects import Object

NAME = "ironic-metrics"
DIRECTORY = "/shared/metrics"
_OLD_AFTER = 5
"""After so many intervals without a measurement a server's file is deleted: another conductor has it, or it is no
longer measured."""
# As the first process of a container the shell ignores SIGTERM, unless it sets a trap; the web server would not end.
_COMMAND = """\
cheroot --bind 0.0.0.0:{port} ironic_prometheus_exporter.app.wsgi:application & server=$!
trap 'kill $server; exit 0' TERM
while kill -0 $server; do
    find {directory} -type f -mmin +{minutes} -delete
    sleep 60 & wait $!
done
exit 1
"""


def options(metrics: Metrics) -> dict[str, dict[str, str]]:
    """Ironic's options for metrics."""
    return {
        "metrics": {"backend": "collector"},
        "oslo_messaging_notifications": {
            "driver": "prometheus_exporter",
            "location": DIRECTORY,
            "transport_url": "fake://",
        },
        "sensor_data": {
            "send_sensor_data": "true",
            "interval": str(metrics.interval_seconds),
            "enable_for_undeployed_nodes": str(metrics.all_servers).lower(),
        },
    }


def container(args: IronicArgs, metrics: Metrics) -> Object:
    """The web server beside a conductor."""
    minutes = -(-_OLD_AFTER * metrics.interval_seconds // 60)
    return objects.container(
        "metrics",
        args.images.ironic,
        ["/bin/sh", "-c", _COMMAND.format(directory=DIRECTORY, minutes=minutes, port=METRICS_PORT)],
        [
            objects.mount("shared", "/shared"),
            objects.file("config", "/etc/ironic/ironic.conf"),
        ],
        env=[{"name": "IRONIC_CONFIG", "value": "/etc/ironic/ironic.conf"}],
        ports=[{"name": "metrics", "containerPort": METRICS_PORT}],
        resources={"requests": {"memory": "48Mi", "cpu": "10m"}},
    )


def service(args: IronicArgs, component: str) -> Object:
    """The Service for all conductors' metrics, within the hub, with annotations by which Prometheus can find it."""
    found = objects.manifest(
        "Service",
        NAME,
        args.namespace,
        component,
        spec={
            "clusterIP": "None",
            "selector": objects.selector(component),
            "ports": [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}],
        },
    )
    found["metadata"]["annotations"] = {"prometheus.io/scrape": "true", "prometheus.io/port": str(METRICS_PORT)}
    return found


def pod_monitor(args: IronicArgs, metrics: Metrics, component: str) -> Object:
    """The PodMonitor for prometheus-operator."""
    endpoint = {"port": "metrics", "path": "/metrics", "interval": f"{metrics.interval_seconds}s"}
    return objects.manifest(
        "PodMonitor",
        NAME,
        args.namespace,
        component,
        spec={"selector": {"matchLabels": objects.selector(component)}, "podMetricsEndpoints": [endpoint]},
    )
