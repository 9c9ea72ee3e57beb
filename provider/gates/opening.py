"""Chooses the module for a kind of gate."""

from __future__ import annotations

from metal_ipi.provider.gates import Opener


def opener(kind: str) -> Opener:
    """The opener of a kind. Its module is imported only now, because the plugin starts without SSH, HTTP and
    certificates."""
    if kind == "ssh-reachable":
        from metal_ipi.provider.gates.ssh_reachable import open_check
    elif kind == "machine-config-access":
        from metal_ipi.provider.gates.machine_config_access import open_check
    elif kind == "address-announced":
        from metal_ipi.provider.gates.address_announced import open_check
    elif kind == "cluster-api-available":
        from metal_ipi.provider.gates.cluster_api import open_check
    elif kind == "ingress-answers":
        from metal_ipi.provider.gates.ingress_answers import open_check
    elif kind == "operator-installed":
        from metal_ipi.provider.gates.operator_lifecycle import open_check
    else:
        from metal_ipi.provider.gates.cluster import OPENERS

        return OPENERS[kind]
    return open_check
