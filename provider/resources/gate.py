"""`Gate`, as programs see it, and its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import pulumi
from pydantic import BeforeValidator

from provider.forms import Seconds, between, wrong
from provider.given import LEFT_OUT, Given, GivenList, ListOf, default
from provider.inputs import Inputs, Problem, kind_of
from provider.resources.base import Resource, computed
from provider.resources.gate_kinds import KINDS, GateSpec
from provider.values import Unknown


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
    def problems(cls, values: Mapping[str, Any], path: str = "") -> list[Problem]:
        kind, spec = values.get("kind"), values.get("spec")
        found = super().problems({key: value for key, value in values.items() if key != "kind"}, path)
        if not isinstance(kind, Unknown) and kind not in KINDS:
            found.append(Problem(path="kind", reason=f"must be one of {', '.join(KINDS)}"))
        elif isinstance(spec, Mapping) and isinstance(kind, str):
            found += KINDS[kind].problems(spec, "spec")
        return found

    def to_wire(self) -> dict[str, Any]:
        return {"kind": self.spec.kind, **super().to_wire()}


class Gate(Resource):
    """Waits until something is so, tells what it waits for, and fails with cause and gathered logs."""

    passed_at: pulumi.Output[str] = computed()
    """When it passed, ISO 8601 in UTC."""
    observed: pulumi.Output[str] = computed()
    """What was seen when it passed."""
    waited_seconds: pulumi.Output[float] = computed()
    """How long it took."""

    def __init__(self, name: str, args: GateArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
