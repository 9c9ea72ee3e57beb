"""The lab's services: how each is started, and how to check that it answers."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import facts
from lab.errors import LabError
from lab.hub.layout import HubLayout
from lab.layout import Layout
from lab.mirror import registry as mirror
from lab.network import bird, plan, proxy
from lab.network.dns import knot

_PROBE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Service:
    """One process of the lab."""

    name: str
    argv: tuple[str, ...]
    probe: Callable[[Layout], None]
    """Raises OSError as long as the service does not answer."""
    patience: float
    """Seconds after which not answering is a failure."""
    grace: float = 10.0
    """Seconds that it has to end when it is told to."""
    directory: str = "."
    """Its working directory, below the state directory."""
    ready: Path | None = None
    """The file with which it says that it is ready; removed before it is started, for an old one proves nothing."""


def select(layout: Layout, machines: str, names: Sequence[str]) -> list[Service]:
    """The named services, in the order in which they start. An unknown name is an error.

    The router is told by the Metal API what to route, and comes with it wherever it is installed. What runs the
    machines' API servers comes with the Metal API and with a rack's BMCs. The hub comes as long as somebody wants it.
    """

    def python(module: str, *more: str) -> tuple[str, ...]:
        return (sys.executable, "-m", module, "--state", str(layout.state), *more)

    resolver = (knot(), "-c", str(layout.dns / "knot.conf"))
    registry = (str(mirror.PROGRAM), "serve", str(layout.mirror / mirror.CONFIGURATION))
    router = (bird.program() or "", "-f", "-c", bird.CONFIGURATION, "-s", bird.CONTROL)
    proxy_argv = (str(proxy.PROGRAM), "-d", "-c", str(proxy.configuration(layout))) if "proxy" in names else ()
    hub = HubLayout(layout.hub)
    api, bmc = (python(module, "--machines", machines) for module in ("lab.metal_api", "lab.bmc"))
    known = (
        Service(name="witness", argv=python("lab.network.witness"), probe=_witness_watches, patience=40),
        Service(name="dns", argv=resolver, probe=_dns_answers, patience=20, directory="dns"),
        Service(name="boot", argv=python("lab.network.boot"), probe=_boot_answers, patience=40),
        Service(name="proxy", argv=proxy_argv, probe=_proxy_listens, patience=20),
        Service(name="mirror", argv=registry, probe=_mirror_answers, patience=40),
        Service(name="bgp", argv=router, probe=_router_answers, patience=20, directory=bird.directory(layout).name),
        Service(name="kubernetes", argv=python("lab.kubernetes"), probe=_kubernetes_listens, patience=40),
        Service(name="metal-api", argv=api, probe=_api_answers, patience=90, ready=layout.api_ready),
        Service(name="bmc", argv=bmc, probe=_bmcs_answer, patience=90),
        Service(name="hub", argv=python("lab.hub"), probe=_hub_ready, patience=90, grace=40, ready=hub.ready),
    )
    if unknown := set(names) - {service.name for service in known}:
        raise LabError(f"no such service: {', '.join(sorted(unknown))}")
    wanted = set(names)
    if "metal-api" in names and bird.program():
        wanted.add("bgp")
    if wanted & {"metal-api", "bmc"}:
        wanted.add("kubernetes")
    if hub.wanted.exists():
        wanted.add("hub")
    return [service for service in known if service.name in wanted]


def environment(layout: Layout) -> dict[str, str]:
    """The environment of a service: this package importable, temporary files inside the state directory."""
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "TMPDIR": str(layout.tmp)}


def _dns_answers(layout: Layout) -> None:
    """Ask for each zone's SOA, in plain bytes: importing a DNS library here would cost more than the answer."""
    zones = plan.zones(disconnected=layout.mirror.exists())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(_PROBE_SECONDS)
        sock.connect((plan.DNS, 53))
        for number, zone in enumerate(zones, start=1):
            labels = [label.encode() for label in zone.split(".") if label]
            name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
            sock.send(struct.pack("!HHHHHH", number, 0, 1, 0, 0, 0) + name + struct.pack("!HH", 6, 1))
            answered, flags, _, answers = struct.unpack("!HHHH", sock.recv(1500)[:8])
            if answered != number or flags & 0x000F or not answers:
                raise OSError(f"zone {zone} is not served")


def _status(connection: http.client.HTTPConnection, path: str, headers: dict[str, str] | None = None) -> int:
    """The status of GET `path`; closes the connection."""
    try:
        connection.request("GET", path, headers=headers or {})
        return connection.getresponse().status
    except http.client.HTTPException as error:
        raise OSError(f"{connection.host}: {error!r}") from error
    finally:
        connection.close()


def _tls(layout: Layout, name: str, port: int = 443) -> http.client.HTTPSConnection:
    """A verified connection to the name's fixed address: the DNS may not be up yet."""
    authority = layout.facility_ca if name in plan.OF_THE_SITE else layout.ca
    context = ssl.create_default_context(cafile=str(authority))
    connection = http.client.HTTPSConnection(name, timeout=_PROBE_SECONDS, context=context)
    plain = socket.create_connection((plan.TLS_NAMES[name], port), timeout=_PROBE_SECONDS)
    connection.sock = context.wrap_socket(plain, server_hostname=name)
    return connection


def _boot_answers(layout: Layout) -> None:
    """The stream document by http and https, and the upload server's greeting."""
    connections = (http.client.HTTPConnection(plan.BOOT, timeout=_PROBE_SECONDS), _tls(layout, plan.BOOT_NAME))
    answers = [_status(connection, "/streams/lab.json") for connection in connections]
    if answers != [200, 200]:
        raise OSError(f"the stream document is answered with status {answers}")
    with socket.create_connection((plan.BOOT, 22), timeout=_PROBE_SECONDS) as upload:
        if not upload.recv(4).startswith(b"SSH-"):
            raise OSError("the upload server does not greet")


def _proxy_listens(_layout: Layout) -> None:
    socket.create_connection((plan.PROXY, plan.PROXY_PORT), timeout=_PROBE_SECONDS).close()


def _mirror_answers(layout: Layout) -> None:
    """It wants an account."""
    status = _status(_tls(layout, plan.MIRROR_NAME, plan.REGISTRY_PORT), "/v2/")
    if status != http.client.UNAUTHORIZED:
        raise OSError(f"the registry answers with status {status}")


def _witness_watches(layout: Layout) -> None:
    """It has begun to write."""
    if not layout.witness.exists():
        raise OSError("it has not begun to write")


def _router_answers(layout: Layout) -> None:
    """BIRD answers on its control socket."""
    from lab.network import bird_control

    bird_control.ask(bird.directory(layout), ["show status"])


def _kubernetes_listens(layout: Layout) -> None:
    """It shows its certificate; what it starts, it starts for machines."""
    context = ssl.create_default_context(cafile=str(layout.ca))
    with socket.create_connection((plan.KUBERNETES, plan.KUBERNETES_PORT), timeout=_PROBE_SECONDS) as plain:
        context.wrap_socket(plain, server_hostname=plan.KUBERNETES_NAME).close()


def _api_answers(layout: Layout) -> None:
    """An authorised request to the API; its metadata service listens from the same moment on."""
    if not layout.api_ready.exists():
        raise OSError("it has not said that it is ready")
    api = facts.require(layout).api
    assert api is not None, "the Metal API runs in labs that have one"
    status = _status(_tls(layout, "api.equinix.com"), "/metal/v1/facilities", {"X-Auth-Token": api.token})
    if status != http.client.OK:
        raise OSError(f"the API answers with status {status}")


def _hub_ready(layout: Layout) -> None:
    """It says so itself: it waits for its own node."""
    if not HubLayout(layout.hub).ready.exists():
        raise OSError("it has not said that it is ready")


def _bmcs_answer(layout: Layout) -> None:
    """They do from the moment on that their control socket is there."""
    from lab.bmc import control

    control.ask(layout, {"do": "servers"})
