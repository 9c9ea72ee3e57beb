"""The facility's wire: one bridge that carries the infrastructure's addresses and that machines are plugged into."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.errors import SandboxRefused
from lab.network import plan


def commands() -> str:
    """What `ip -batch` is told."""
    lines = [
        "link set lo up",
        f"link add {plan.BRIDGE} address 02:00:c0:00:02:01 type bridge forward_delay 0 stp_state 0",
        f"link set {plan.BRIDGE} up",
        f"address add {plan.GATEWAY}/{plan.INFRASTRUCTURE_PREFIX} dev {plan.BRIDGE}",
        *(
            f"address add {address}/32 dev {plan.BRIDGE}"
            for address in (
                plan.API,
                plan.METADATA,
                plan.BOOT,
                plan.SOS,
                plan.KUBERNETES,
                plan.DNS,
                plan.PROXY,
                *plan.BGP_PEERS,
            )
        ),
        # Elastic addresses are routed to somebody or to nobody; without this they would be looked for on the bridge.
        f"route add unreachable {plan.ELASTIC}",
    ]
    return "\n".join(lines) + "\n"


def set_up() -> None:
    """Make the bridge in this network namespace, and let it route between machines."""
    try:
        subprocess.run(["ip", "-batch", "-"], input=commands(), text=True, capture_output=True, check=True, timeout=10)
    except FileNotFoundError as error:
        raise SandboxRefused("the lab needs the program `ip`: install the package iproute2") from error
    except subprocess.CalledProcessError as error:
        raise SandboxRefused(f"cannot set up the lab's network: {error.stderr.strip()}") from error
    settings = Path("/proc/sys/net/ipv4")
    for name, value in {
        "ip_forward": "1",
        # A new namespace may inherit the host's strict filter, which drops what a machine's second address sends.
        "conf/all/rp_filter": "0",
        "conf/default/rp_filter": "0",
        f"conf/{plan.BRIDGE}/rp_filter": "0",
    }.items():
        (settings / name).write_text(value)
