"""`Gate`, as programs see it, and its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import pulumi
from pydantic import BeforeValidator

from metal_ipi.provider.forms import Seconds, between, one_of, wrong
from metal_ipi.provider.given import LEFT_OUT, Given, GivenList, ListOf, default
from metal_ipi.provider.inputs import Conflict, Inputs, Problem, kind_of
from metal_ipi.provider.resources.base import Resource, computed
from metal_ipi.provider.resources.gate_kinds import KINDS, GateSpec


def _map(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise wrong(f"must be a map, not {kind_of(value)}")
    return value


if TYPE_CHECKING:
    _Spec = GateSpec
else:
    _Spec = Annotated[Any, BeforeValidator(_map)]


class GateArgs(Inputs):
    """Arguments of `Gate`."""

    spec: _Spec
    """What to wait for."""
    kind: Given[Annotated[str, one_of(*KINDS)] | None] = default()
    """The kind of what to wait for. Programs in Python leave it out: `spec` tells it."""
    timeout_seconds: Given[Seconds]
    """How long to wait before giving up."""
    stability_seconds: Given[Annotated[float, between(0)] | None] = default()
    """How long it must stay so."""
    triggers: GivenList[Any] = default(())
    """A change of any of them makes the gate wait again, for all nodes."""
    aborts: bool = False
    """Without this one no cluster comes about: when it fails, all other gates of the update give up too."""
    gives_up_with: Annotated[ListOf[str], LEFT_OUT] = default(())
    """Names of gates that run beside this one, and without which it cannot pass: it gives up when one of them fails."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        if given.get("kind") is None:
            yield ("kind",), f"is required: one of {', '.join(KINDS)}"

    @classmethod
    def problems(cls, values: Mapping[str, Any], path: str = "") -> list[Problem]:
        kind, spec = values.get("kind"), values.get("spec")
        declared = KINDS.get(kind) if isinstance(kind, str) else None
        found = super().problems(values, path)
        return [*found, *declared.problems(spec, "spec")] if declared and isinstance(spec, Mapping) else found

    def to_wire(self) -> dict[str, Any]:
        return {**super().to_wire(), "kind": self.spec.kind}


class Gate(Resource[GateArgs]):
    """Waits until something is so, tells what it waits for, and fails with cause and gathered logs."""

    passed_at: pulumi.Output[str] = computed()
    """When it passed, ISO 8601 in UTC."""
    observed: pulumi.Output[str] = computed()
    """What was seen when it passed."""
    waited_seconds: pulumi.Output[float] = computed()
    """How long it took."""
