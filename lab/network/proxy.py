"""The facility's forward proxy (tinyproxy), for machines whose cluster is configured to use it."""

from __future__ import annotations

from pathlib import Path

from lab.layout import Layout, write_private
from lab.network import plan

PROGRAM = Path("/usr/bin/tinyproxy")


def configuration(layout: Layout) -> Path:
    """Write its configuration. It logs each request, with the address that it came from, to the service's log."""
    path = layout.state / "proxy.conf"
    write_private(path, f"Listen {plan.PROXY}\nPort {plan.PROXY_PORT}\nTimeout 600\nMaxClients 500\nLogLevel Connect\n")
    return path
