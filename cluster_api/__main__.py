"""The providers: `python -m metal_ipi.cluster_api [--kubeconfig FILE] [--namespace NAME] [--metrics-port PORT]
[--webhook-certificates DIR]`.

One process for all three. Of several, the one that holds the Lease works; the others wait. It ends when it loses the
Lease, and on SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kopf
from prometheus_client import start_http_server

from metal_ipi.cluster_api import admission, metrics, webhooks
from metal_ipi.cluster_api.absences import Absences
from metal_ipi.cluster_api.api import Api
from metal_ipi.cluster_api.claims import Claims
from metal_ipi.cluster_api.clusters import Clusters
from metal_ipi.cluster_api.installations import Installations
from metal_ipi.cluster_api.leader import Leader
from metal_ipi.cluster_api.operator import Operator
from metal_ipi.cluster_api.reads import Reads
from metal_ipi.cluster_api.reconcilers.base import Hub

_LOST = 3
_THREADS = 64
"""For what waits in threads for all clusters: name servers, S3, Ironic, Route 53. Python's own limit is 4 more than the
processors."""
_GRACE = 2.0
"""Seconds for running steps to save their progress; after that another process may get the Lease."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m metal_ipi.cluster_api", description="Cluster API providers")
    parser.add_argument("--kubeconfig", help="the management cluster; not set: the one in which this process runs")
    parser.add_argument(
        "--namespace", default="metal-ipi-system", help="the providers' own namespace, which contains their Leases"
    )
    parser.add_argument(
        "--lease-seconds",
        type=int,
        default=15,
        help="seconds without renewal after which a leader loses the Lease, 5 to 300",
    )
    parser.add_argument("--metrics-port", type=int, default=8080, help="the port for Prometheus; 0: none")
    parser.add_argument("--metrics-address", default="0.0.0.0", help="the address of that")  # noqa: S104 - in a pod
    parser.add_argument(
        "--webhook-certificates",
        type=Path,
        help="a folder with tls.crt and tls.key of the webhook; not set: no webhook",
    )
    parser.add_argument("--webhook-port", type=int, default=webhooks.PORT, help="the port of the webhook")
    parser.add_argument("--webhook-address", help="the address of that; not set: all")
    parser.add_argument(
        "--max-away", type=int, default=0, help="how many machines of all clusters may be away at once; 0: no limit"
    )
    parser.add_argument(
        "--max-installing", type=int, default=0, help="how many clusters may be installed at once; 0: no limit"
    )
    given = parser.parse_args()
    for name in ("max_away", "max_installing"):
        if (limit := getattr(given, name)) < 0:
            parser.error(f"--{name.replace('_', '-')} {limit}: give 1 or more, or 0 for no limit")
    if not 5 <= given.lease_seconds <= 300:
        parser.error(f"--lease-seconds {given.lease_seconds}: give 5 to 300")
    return given


async def _run(arguments: argparse.Namespace) -> int:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
    api = Api(arguments.kubeconfig)
    if arguments.kubeconfig:  # where kopf looks
        os.environ["KUBECONFIG"] = arguments.kubeconfig
    clusters = Clusters(api)
    absences = Absences(api, arguments.namespace, arguments.max_away)
    installations = Installations(api, clusters, arguments.max_installing)
    hub = Hub(
        api=api,
        reads=Reads(api),
        clusters=clusters,
        claims=Claims(api, arguments.namespace),
        absences=absences,
        installations=installations,
    )
    metrics.register(clusters, absences, installations)
    if arguments.metrics_port:
        start_http_server(arguments.metrics_port, addr=arguments.metrics_address)
    webhook = asyncio.ensure_future(_webhook(api, arguments))
    stopping = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopping.set)
    # With threads of its own: it never waits for calls of reconcilers.
    leader = Leader(Api(arguments.kubeconfig), arguments.namespace, seconds=arguments.lease_seconds)
    ended = asyncio.ensure_future(stopping.wait())
    acquired = asyncio.ensure_future(leader.acquire())
    await asyncio.wait({ended, acquired, webhook}, return_when=asyncio.FIRST_COMPLETED)
    if webhook.done():  # it ends by an error only
        await webhook
    if not acquired.done():
        acquired.cancel()
        return 0
    stop = asyncio.Event()
    held = asyncio.ensure_future(leader.hold())
    working = asyncio.ensure_future(
        kopf.operator(
            registry=Operator(hub).registry(in_pod=arguments.kubeconfig is None),
            clusterwide=True,
            stop_flag=stop,
            memo=kopf.Memo(),
            vault=None,
        )
    )
    await asyncio.wait({ended, held, working, webhook}, return_when=asyncio.FIRST_COMPLETED)
    await _abandon(clusters)
    if held.done():  # another process begins in a moment: what did not end by now ends with this one
        os._exit(_LOST)
    stop.set()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(working, 20)
    await _abandon(clusters)  # what began meanwhile
    held.cancel()
    await leader.release()
    return 0


async def _webhook(api: Api, arguments: argparse.Namespace) -> None:
    """Serve the admission webhook where a certificate is given; else wait."""
    certificates: Path | None = arguments.webhook_certificates
    if certificates is None:
        await asyncio.Event().wait()
    else:
        where = (arguments.webhook_port, arguments.webhook_address)
        await admission.serve(admission.Admission(api), certificates, *where)


async def _abandon(clusters: Clusters) -> None:
    if tasks := [task for engine in clusters.engines.values() for task in engine.abandon()]:
        await asyncio.wait(tasks, timeout=_GRACE)


def main() -> int:
    """Run until stopped. Returns 3 if the Lease was lost."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    for noisy in ("httpx", "asyncssh", "kopf"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return asyncio.run(_run(_arguments()))


if __name__ == "__main__":
    sys.exit(main())
