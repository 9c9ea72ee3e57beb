"""A machine's BGP sessions and the routes to its peers, for kube-vip and MetalLB, which announce addresses from there.

Peers accept a session only from the machine's private address, over the private network; but the default route goes
over the public one. All machines get the same script, settings and unit; see `bgp_routes.sh`. The routes follow the
default route to the OVS bridge br-ex. Pure functions.

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
    """The files of a machine; `metadata_url` is the platform's metadata service."""
    return [
        NodeFile(path=_SCRIPT, text=_script(), mode=0o755),
        NodeFile(path="/etc/metal-ipi/bgp-routes.env", text=f"METADATA_URL='{metadata_url}'\n", mode=0o644),
    ]


def unit() -> NodeUnit:
    """The unit that runs the script."""
    return network_service(
        UNIT, description="This machine's BGP sessions, and the routes to its peers", program=_SCRIPT
    )


@cache
def _script() -> str:
    return Path(__file__).with_suffix(".sh").read_text()
