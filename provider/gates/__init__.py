"""Gates: what is waited for. One module per kind; the evaluation of answers is pure and apart from the I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from provider.resource import Context
from provider.resources.gate_kinds import GateLogs, GateNode


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node as a gate knows it."""

    name: str
    address: str
    host_key: str
    machine_id: str | None
    console: str | None
    port: int


@dataclass(frozen=True, kw_only=True)
class Access:
    """Nodes, how to log in to them, and where their logs go."""

    nodes: tuple[Node, ...]
    user: str
    private_key: str | None
    log_directory: str | None


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What one look saw."""

    passed: bool
    text: str
    """What was seen, or what is waited for: one line."""
    waiting: tuple[str, ...] = ()
    """Names of the nodes that have not passed; empty when the gate is not about nodes."""
    fatal: str | None = None
    """A cause that waiting will not cure."""


class Check(Protocol):
    """Looks whether a gate is open. Keeps what passed already."""

    async def look(self, elapsed: float) -> Observation:
        """One look, at most some seconds long. Raises nothing for what may pass by itself."""
        ...


Spec = Mapping[str, Any]
Opener = Callable[[Context, Spec, Spec | None], Check | None]
"""Makes the check of a specification; with an old one, only for what is new, and None when nothing is."""


def access_of(spec: Spec) -> Access:
    """The nodes of a specification, and how to log in to them. It was checked when it came, or is of a state."""
    logs = GateLogs.of_state(spec)
    return Access(
        nodes=tuple(map(_node, logs.nodes)),
        user=logs.user or "core",
        private_key=logs.private_key,
        log_directory=logs.directory,
    )


def nodes_of(values: Iterable[Mapping[str, Any]]) -> list[Node]:
    """Nodes as they are on the wire."""
    return [_node(GateNode.of_state(value)) for value in values]


def _node(node: GateNode) -> Node:
    return Node(
        name=node.name,
        address=node.address,
        host_key=node.host_key,
        machine_id=node.machine_id,
        console=node.console or None,
        port=node.port or 22,
    )
