"""A real Knot DNS server on loopback, with two zones that take updates signed by one key, and show all they hold."""

from __future__ import annotations

import base64
import contextlib
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KEY = base64.b64encode(b"a secret of thirty-two bytes....").decode()

_CONFIG = """
server:
    rundir: "{folder}"
    listen: 127.0.0.1@{port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "{folder}"
key:
  - id: metal-ipi.
    algorithm: hmac-sha256
    secret: {key}
acl:
  - id: update
    key: metal-ipi.
    action: update
  - id: look
    address: 127.0.0.1
    action: transfer
template:
  - id: default
    storage: "{folder}"
    acl: [update, look]
    zonefile-sync: -1
    journal-content: all
zone:
  - domain: {zone}
  - domain: 100.51.198.in-addr.arpa
"""
_ZONE = "@ 60 SOA ns1.{zone}. admin.{zone}. 1 60 60 60 1\n@ 60 NS ns1.{zone}.\n"


def installed() -> bool:
    return shutil.which("knotd") is not None


def free_port() -> int:
    """A port for a server that is stopped and started again: Linux gives ports from 32768 on to connections."""
    while True:
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", random.randrange(20000, 32768)))
            return int(sock.getsockname()[1])


@contextmanager
def running(folder: Path, zone: str = "facility.test") -> Generator[dict[str, Any], None, None]:
    """The provider's `dns` section for a running server."""
    port = free_port()
    (folder / "knot.conf").write_text(_CONFIG.format(folder=folder, port=port, key=KEY, zone=zone))
    (folder / f"{zone}.zone").write_text(_ZONE.format(zone=zone) + "ns1 60 A 192.0.2.53\n")
    (folder / "100.51.198.in-addr.arpa.zone").write_text(_ZONE.format(zone=zone))
    server = subprocess.Popen(
        ["knotd", "-c", folder / "knot.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(port, zone)
        yield {
            "service": "rfc2136",
            "server": "127.0.0.1",
            "port": port,
            "zone": zone,
            "tsig": {"name": "metal-ipi.", "algorithm": "hmac-sha256", "secret": KEY},
            "propagationTimeout": 5,
        }
    finally:
        server.terminate()
        server.wait(10)


def _wait(port: int, zone: str) -> None:
    import dns.message
    import dns.query

    deadline = time.monotonic() + 10
    while True:
        try:
            if dns.query.tcp(dns.message.make_query(f"{zone}.", "SOA"), "127.0.0.1", 0.5, port).answer:
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, "knotd does not answer"
        time.sleep(0.05)
