"""Who may reach the machine config server: the cluster's own machines, and whom the settings name.

What it serves holds secrets (the pull secret, a token to join with), and it asks nobody who they are; OpenShift wants
its ports reachable from within only. Metal has no security groups and gives each machine a public address that nobody
knows beforehand, so the machines filter for themselves: from the first boot for everybody, and as soon as the addresses
of the cluster's machines are known, they are handed over by SSH. A machine that is refused asks again: Ignition never
gives up.

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
    """The files of a machine that has a machine config server; the same on all."""
    return [NodeFile(path=PROGRAM, text=_script(), mode=0o755)]


def unit() -> NodeUnit:
    """The service that closes the ports before anything listens there, at every boot."""
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
    """The addresses of machines and further CIDRs, sorted: whom to let in."""
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
    """Hand the networks over to nodes, and see from here that nobody else gets through.

    Args:
        nodes: the machines that serve it.
        allowed: CIDRs and addresses to let in.
        timeout: seconds.
        address: the API's own address, if there is one: nobody else may get through there, either.
        triggers: what changes when a node was installed again, and has forgotten whom it lets in.
        part: the pool whose machines these networks are; None: those of the cluster's own stack.
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
