"""The way from a machine to its BGP peers, for whatever announces service addresses from there.

Peers take a session only from the machine's private address and over its network; the default route leads out over the
public one. All machines are given the same: a script, its settings and a unit; see `bgp_routes.sh`. A machine that runs
kube-vip has the same done by kube-vip's own script. Pure functions.

Source: cloud-provider-equinix-metal, issue 178 and README; Metal's metadata (`bgp_neighbors`, `network.addresses`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from components.boot.ignition import NodeFile, NodeUnit, network_service

UNIT = "metal-ipi-bgp-routes.service"
_SCRIPT = "/usr/local/bin/metal-ipi-bgp-routes"


def files(metadata_url: str) -> list[NodeFile]:
    """The files of a machine; `metadata_url` is where the platform tells it about itself."""
    return [
        NodeFile(path=_SCRIPT, text=_script(), mode=0o755),
        NodeFile(path="/etc/metal-ipi/bgp-routes.env", text=f"METADATA_URL='{metadata_url}'\n", mode=0o644),
    ]


def unit() -> NodeUnit:
    """The service that runs the script."""
    return network_service(UNIT, description="The way to this machine's BGP peers", program=_SCRIPT)


@cache
def _script() -> str:
    return Path(__file__).with_suffix(".sh").read_text()
