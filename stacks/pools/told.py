"""What the cluster's stack provides to the stacks of its pools: two of its outputs, one of them secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from metal_ipi.components.cluster.installation import PoolInstallation
from metal_ipi.components.machines.contract import LastingMachine
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import ClusterCredentials
from metal_ipi.stacks.base import ClusterBase

PUBLIC, SECRET = "forPools", "forPoolsSecret"
"""The names of the outputs. `stacks.pools.cluster` reads them."""


def outputs_for_pools(
    base: ClusterBase,
    credentials: ClusterCredentials,
    control_plane: Mapping[Node, LastingMachine],
    installation: PoolInstallation | None,
) -> dict[str, pulumi.Input[Any]]:
    """The outputs. They contain each control plane machine's generation: a machine that was installed again has lost
    its list of allowed machines, so the pools must send theirs again."""
    generations = installation.generations if installation else {}
    return {
        PUBLIC: {
            "run": base.keys.id,
            "publicKey": base.keys.public_key,
            "apiUrl": credentials.url,
            "ingressAddress": base.ingress_address,
            "controlPlane": {
                node.hostname: {
                    "machineId": machine.machine_id,
                    "publicIpv4": machine.public_ipv4,
                    "privateIpv4": machine.private_ipv4,
                    "publicIpv6": machine.public_ipv6,
                    "console": machine.console,
                    "ipv6": machine.ipv6,
                    "generation": generations.get(node),
                }
                for node, machine in control_plane.items()
            },
            "platform": dict(base.platform.shared),
        },
        SECRET: pulumi.Output.secret(
            {
                "privateKey": base.keys.private_key,
                "hostKeySeed": base.keys.host_key_seed,
                "workerPointer": base.worker_pointer,
                "caPem": credentials.ca_pem,
                "clientCertPem": credentials.client_cert_pem,
                "clientKeyPem": credentials.client_key_pem,
            }
        ),
    }
