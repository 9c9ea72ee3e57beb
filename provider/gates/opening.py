"""Which module looks whether a gate of a kind is open.

Each is imported when the first gate of its kind is: the plug-in starts without SSH, HTTP and certificates.
"""

from __future__ import annotations

from provider.gates import Opener


def opener(kind: str) -> Opener:
    """The kind's opener."""
    if kind == "ssh-reachable":
        from provider.gates.ssh_reachable import open_check
    elif kind == "machine-config-access":
        from provider.gates.machine_config_access import open_check
    elif kind == "address-announced":
        from provider.gates.address_announced import open_check
    elif kind == "api-answers":
        from provider.gates.api_answers import open_check
    elif kind == "bootstrap-complete":
        from provider.gates.bootstrap_complete import open_check
    elif kind == "nodes-ready":
        from provider.gates.nodes_ready import open_check
    else:
        from provider.gates.install_complete import open_check
    return open_check
