"""A machine's BGP sessions and the routes to its peers, for what announces addresses from there: kube-vip, MetalLB.

Peers take a session only from the machine's private address and over its network; the default route leads out over the
public one. All machines are given the same: a script, its settings and a unit; see `bgp_routes.sh`. The routes follow
the default route to the OVS bridge br-ex. Pure functions.

Sources: cloud-provider-equinix-metal, issue 178 and README; Metal's metadata (`bgp_neighbors`, `network.addresses`);
machine-config-operator, configure-ovs.sh (the bridge gets the default interface's addresses, at every boot).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from metal_ipi.components.boot.ignition import NodeFile, NodeUnit, network_service

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
    return network_service(
        UNIT, description="This machine's BGP sessions, and the routes to its peers", program=_SCRIPT
    )


@cache
def _script() -> str:
    return Path(__file__).with_suffix(".sh").read_text()
