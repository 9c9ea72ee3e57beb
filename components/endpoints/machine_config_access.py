"""A packet filter on machines with a machine config server: only the cluster's machines and configured networks reach
it.

The machine config server serves secrets (the pull secret, a token to join with) without authentication, so OpenShift
requires that its ports are reachable only from the cluster's machines. Metal has no security groups, and gives each
machine a public address that is not known in advance. So the machines filter themselves: from the first boot they block
everyone, and once the addresses of the cluster's machines are known, these are sent to them over SSH. A machine that is
blocked tries again, because Ignition never gives up.

Sources: openshift/machine-config-operator (22623 with TLS, 22624 without); nftables' documentation (priority, sets).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pulumi

from metal_ipi.components.boot.ignition import NodeFile, NodeUnit
from metal_ipi.components.cluster.pool import Access
from metal_ipi.components.machines.contract import Machine
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import Gate, GateArgs, MachineConfigAccess

UNIT = "metal-ipi-machine-config-access.service"
PROGRAM = "/usr/local/bin/metal-ipi-machine-config-access"


def files() -> list[NodeFile]:
    """The files of a machine with a machine config server; the same on all machines."""
    return [NodeFile(path=PROGRAM, text=_script(), mode=0o755)]


def unit() -> NodeUnit:
    """The unit that closes the ports at every boot, before anything listens on them."""
    return NodeUnit(
        name=UNIT,
        text=(
            "[Unit]\n"
            "Description=Who may ask the machine config server\n"
            "Before=network-online.target\n"
            "[Service]\n"
            "Type=oneshot\n"
            "RemainAfterExit=yes\n"
            f"ExecStart=/bin/bash {PROGRAM}\n"
            "[Install]\n"
            "WantedBy=multi-user.target\n"
        ),
    )


def networks(machines: Sequence[Machine], others: Sequence[str]) -> pulumi.Output[list[str]]:
    """The addresses of the machines, and further CIDRs, sorted: the allowed sources."""
    addresses = [
        address for machine in machines for address in (machine.public_ipv4, machine.private_ipv4, machine.public_ipv6)
    ]
    return pulumi.Output.all(*addresses).apply(lambda known: sorted({*filter(None, known), *others}))


def gate(
    name: str,
    nodes: Mapping[Node, Machine],
    *,
    access: Access,
    allowed: pulumi.Input[Sequence[str]],
    timeout: int,
    address: pulumi.Input[str] | None = None,
    triggers: Sequence[pulumi.Input[str]] = (),
    part: str | None = None,
    opts: pulumi.ResourceOptions,
) -> Gate:
    """A gate that sends the allowed networks to nodes, and checks from here that connections from elsewhere are
    blocked.

    Args:
        nodes: the machines with a machine config server.
        allowed: CIDRs and addresses that are allowed.
        timeout: seconds.
        address: the API's own address, if there is one: connections to it are checked, too.
        triggers: values that change when a node was installed again and has lost its list of allowed networks.
        part: the pool whose machines `allowed` lists; None: the machines of the cluster's own stack.
    """
    spec = MachineConfigAccess(
        logs=access.logs(nodes),
        program=PROGRAM,
        networks=allowed,
        addresses=[] if address is None else [address],
        part=part,
    )
    return Gate(name, GateArgs(spec=spec, timeout_seconds=timeout, triggers=triggers, aborts=True), opts)


@cache
def _script() -> str:
    return Path(__file__).with_suffix(".sh").read_text()
