"""`NodeMarks` and its inputs, for programs."""

from __future__ import annotations

from typing import Annotated

from metal_ipi.provider.forms import Anything, NodeName, one_of
from metal_ipi.provider.given import Given, ListOf, MapOf, default
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import Resource
from metal_ipi.provider.resources.credentials import ClusterCredentials


class TaintArgs(Inputs):
    """A taint of a node."""

    key: str
    """Its key."""
    value: Anything = ""
    """Its value; may be empty."""
    effect: Annotated[str, one_of("NoSchedule", "PreferNoSchedule", "NoExecute")]
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""

    def __hash__(self) -> int:
        return hash((self.key, self.effect))


class NodeMarksOfNode(Inputs):
    """The labels and taints of one node."""

    name: NodeName
    """The node's name."""
    machine: Given[str | None] = default()
    """The platform's id of its machine: a replaced machine gets the labels and taints again."""
    labels: MapOf[Anything] = default({})
    """Label key to value, which may be empty."""
    taints: ListOf[TaintArgs] = default(())
    """Its taints. Taints that others have set stay."""

    def __hash__(self) -> int:
        return hash(self.name)


class NodeMarksArgs(Inputs):
    """Arguments of `NodeMarks`."""

    credentials: ClusterCredentials
    """How to reach the cluster."""
    nodes: ListOf[NodeMarksOfNode]
    """The nodes. They must have joined the cluster."""


class NodeMarks(Resource[NodeMarksArgs]):
    """Labels and taints of nodes. Owns only those that are named here."""
