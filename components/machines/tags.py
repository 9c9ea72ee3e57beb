"""How machines are marked, so that they can be found without any state."""

from __future__ import annotations

from components.machines.contract import Role


def tags(*, stack: str, cluster: str, hostname: str, role: Role) -> list[str]:
    """The tags of one machine: `cluster` is the cluster's domain; `stack` and `hostname` together are unique."""
    return [
        "metal-ipi",
        f"metal-ipi:stack={stack}",
        f"metal-ipi:cluster={cluster}",
        f"metal-ipi:name={hostname}",
        f"metal-ipi:role={role}",
    ]


def reservation_tags(*, stack: str, cluster: str, name: str) -> list[str]:
    """The tags of a reserved address, or block of addresses."""
    return ["metal-ipi", f"metal-ipi:stack={stack}", f"metal-ipi:cluster={cluster}", f"metal-ipi:name={name}"]
