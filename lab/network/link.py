"""The facility's wire: one bridge that carries the infrastructure's addresses and that machines are plugged into."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.errors import SandboxRefused
from lab.network import plan

OUTSIDE = "outside0"
"""The interface of the default route in a disconnected lab; nothing answers there."""


def commands(*, disconnected: bool = False) -> str:
    """The commands for `ip -batch`."""
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
                plan.MIRROR,
                *plan.BGP_PEERS,
            )
        ),
        # Elastic addresses are routed to somebody or to nobody; without this they would be looked for on the bridge.
        f"route add unreachable {plan.ELASTIC}",
    ]
    if disconnected:
        lines += [
            f"link add {OUTSIDE} type bridge",  # without ports: what is sent there is seen, and goes nowhere
            f"link set {OUTSIDE} addrgenmode none arp off",  # nobody is asked who has an address
            f"link set {OUTSIDE} up",
            f"route add default dev {OUTSIDE}",
        ]
    return "\n".join(lines) + "\n"


_IPV6 = Path("/proc/sys/net/ipv6")


def has_ipv6() -> bool:
    """Whether the kernel has IPv6. Without it the facility is one of IPv4 alone."""
    return _IPV6.is_dir()


def _set_up_ipv6() -> None:
    # A new namespace may inherit that the host has none. Machines that share this kernel bind addresses of a range.
    for name, value in {
        "conf/all/disable_ipv6": "0",
        "conf/default/disable_ipv6": "0",
        "ip_nonlocal_bind": "1",
    }.items():
        (_IPV6 / name).write_text(value)
    gateway = f"{plan.GATEWAY_IPV6}/{plan.INFRASTRUCTURE_IPV6.partition('/')[2]}"
    command = ["ip", "address", "add", gateway, "dev", plan.BRIDGE, "nodad"]
    subprocess.run(command, text=True, capture_output=True, check=True, timeout=10)


def set_up(*, disconnected: bool = False) -> None:
    """Make the bridge in this network namespace, and let it route between machines."""
    told = commands(disconnected=disconnected)
    try:
        subprocess.run(["ip", "-batch", "-"], input=told, text=True, capture_output=True, check=True, timeout=10)
        if has_ipv6():
            _set_up_ipv6()
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
