"""Tags and labels of everything that a cluster orders, so that it can be found without a state."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from metal_ipi.components.machines.node import Role


def tags(
    *, stack: str, cluster: str, hostname: str, role: Role, run: pulumi.Input[str], further: Sequence[str] = ()
) -> list[pulumi.Input[str]]:
    """The tags of one machine.

    Args:
        cluster: the cluster's domain.
        hostname: unique within the stack.
        run: the id of this installation of the cluster, from its first `up` to its last `down`.
        further: the user's own tags.
    """
    marks = reservation_tags(stack=stack, cluster=cluster, name=hostname, run=run)
    return [*marks[:-1], f"metal-ipi:role={role}", marks[-1], *further]


def reservation_tags(
    *, stack: str, cluster: str, name: str, run: pulumi.Input[str], further: Sequence[str] = ()
) -> list[pulumi.Input[str]]:
    """The tags of a reserved address or block of addresses."""
    return [
        "metal-ipi",
        f"metal-ipi:stack={stack}",
        f"metal-ipi:cluster={cluster}",
        f"metal-ipi:name={name}",
        pulumi.Output.concat("metal-ipi:run=", run),
        *further,
    ]


def label(*, stack: str, cluster: str, run: pulumi.Input[str], name: str = "", text: str = "") -> pulumi.Output[str]:
    """The label of an object that cannot have tags: an SSH key, a VLAN. `text` is for people."""
    named = f":{name}" if name else ""
    return pulumi.Output.concat(f"metal-ipi:{stack}:{cluster}{named} run=", run, f" {text}" if text else "")
