"""Checks which resources `make up REPLACE=...` may replace. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tools.errors import StackError
from tools.state import EPHEMERAL, REMOVAL, SERVERS, Deployment

_CONTROL_PLANE = re.compile(r"-control-plane-\d+$")
"""The end of names of control plane machines."""


def urns(state: Deployment, stack: str, names: Sequence[str]) -> list[str]:
    """The URNs of the named machines; raises StackError if one does not exist or must not be replaced."""
    found = {name: state.machine(name) for name in names}
    unknown = [name for name, urn in found.items() if urn is None]
    if unknown:
        raise StackError(
            f"there is no machine {', '.join(unknown)} to replace",
            why=f"the state of stack '{stack}' has: {', '.join(state.machines()) or 'none'}",
            remedy="name one of these: make up REPLACE=<name>",
        )
    servers = [name for name, urn in found.items() if urn and any(f"{type_}::" in urn for type_ in SERVERS)]
    if servers:
        raise StackError(
            f"{', '.join(servers)} cannot be ordered anew",
            why="they are your own servers, which are not ordered",
            remedy="to have one installed again, raise its `installation` number in metal-ipi:platform.servers",
        )
    if state.has(REMOVAL):
        _keep_what_formed_the_cluster({name: urn for name, urn in found.items() if urn})
        _keep_quorum(state, names)
    return [urn for urn in found.values() if urn]


def _keep_what_formed_the_cluster(found: dict[str, str]) -> None:
    gone = [name for name, urn in found.items() if f"{EPHEMERAL}::" in urn]
    if gone:
        raise StackError(
            f"{', '.join(gone)} cannot be replaced any more",
            why="the cluster is formed: the bootstrap machine and its Ignition were removed",
            remedy="remove it from REPLACE; to install the cluster again, begin with `make down`",
        )


def _keep_quorum(state: Deployment, names: Sequence[str]) -> None:
    """Raises StackError if etcd would lose its majority: of n members it needs all but (n - 1) / 2, rounded down."""
    members = [name for name in state.machines() if _CONTROL_PLANE.search(name)]
    asked = sorted(set(names) & set(members))
    spare = (len(members) - 1) // 2
    if len(asked) > spare:
        raise StackError(
            f"{', '.join(asked)} cannot be replaced in one run",
            why=f"etcd has {len(members)} members and works without {spare} of them",
            remedy="replace one, wait until etcd has the new member, and continue with the next"
            if spare
            else "a single node is installed anew: `make down`, then `make up`",
        )
