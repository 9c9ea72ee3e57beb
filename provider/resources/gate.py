"""`Gate` and its inputs, for programs."""

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
    """The kind of gate. Python programs omit it, because `spec` defines it."""
    timeout_seconds: Given[Seconds]
    """Seconds to wait before giving up."""
    stability_seconds: Given[Annotated[float, between(0)] | None] = default()
    """Seconds that the condition must stay true."""
    triggers: GivenList[Any] = default(())
    """A change of any of them makes the gate wait again, for all nodes."""
    aborts: bool = False
    """Whether the cluster cannot be created without this gate: when it fails, all other gates of the update give up
    too."""
    gives_up_with: Annotated[ListOf[str], LEFT_OUT] = default(())
    """Names of parallel gates that this one depends on: it gives up when one of them fails."""

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
    """Waits for a condition and shows what it waits for. On a failure it reports the cause, and gathers logs."""

    passed_at: pulumi.Output[str] = computed()
    """Time at which it passed, ISO 8601 in UTC."""
    observed: pulumi.Output[str] = computed()
    """What it observed when it passed."""
    waited_seconds: pulumi.Output[float] = computed()
    """Seconds that it waited."""
