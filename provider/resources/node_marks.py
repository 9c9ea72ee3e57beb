"""`NodeMarks`, as programs see it, and its inputs."""

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
    """Its value; a taint may have none."""
    effect: Annotated[str, one_of("NoSchedule", "PreferNoSchedule", "NoExecute")]
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""

    def __hash__(self) -> int:
        return hash((self.key, self.effect))


class NodeMarksOfNode(Inputs):
    """The labels and taints of one node."""

    name: NodeName
    """The node's name."""
    machine: Given[str | None] = default()
    """The platform's id of its machine: another one gets them anew."""
    labels: MapOf[Anything] = default({})
    """Key to value, which may be empty."""
    taints: ListOf[TaintArgs] = default(())
    """Its taints; those of others stay."""

    def __hash__(self) -> int:
        return hash(self.name)


class NodeMarksArgs(Inputs):
    """Arguments of `NodeMarks`."""

    credentials: ClusterCredentials
    """The cluster."""
    nodes: ListOf[NodeMarksOfNode]
    """The nodes, which have joined."""


class NodeMarks(Resource[NodeMarksArgs]):
    """Labels and taints of nodes: those that are named here, and no others."""
