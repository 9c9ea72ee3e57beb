"""What earlier runs left in this stack's state, read before this run declares anything.

Pulumi hands a resource its own state only, and the assets of the installer come before everything whose state tells how
far the installation is. So the program asks the engine for the state of its own stack: `readStackResourceOutputs`, a
function of the engine's own provider (pulumi/pulumi, pkg/resource/deploy/builtins.go). It answers in previews too, from
whatever backend the state is in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pulumi

from metal_ipi.components.machines.node import Node

READ_STATE = "pulumi:pulumi:readStackResourceOutputs"
READ_OUTPUTS = "pulumi:pulumi:readStackOutputs"


@dataclass(frozen=True, kw_only=True)
class PreviousRuns:
    """How far earlier runs came, and what they made the installer's assets of."""

    bootstrapped: bool
    """Whether the gate has passed behind which there is a cluster."""
    request: Mapping[str, Any] | None = None
    """What the installer was asked for; secret. None: there are no assets."""
    assets: str = ""
    """The driver's document, as it was printed; secret."""
    public_key: str = ""
    """The cluster's SSH key."""
    private_key: str = ""
    """It opens the cluster's machines; secret."""
    host_key_seed: str = ""
    """What their host keys are derived from; secret."""
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])
    """Public addresses of machines, by short host name."""
    has_control_plane: bool = False
    """Whether a machine of the control plane was ordered, or claimed."""
    machines: frozenset[str] = frozenset()
    """All machines that were, by short host name."""


def previous_runs(*, assets: str, gate: str, keys: str, control_plane: Sequence[Node]) -> PreviousRuns:
    """What the state has of the resources of these names, and of resources that say which of these machines they are.
    Where it cannot be read, the cluster counts as formed: then nothing is made anew."""
    try:
        answer: Any = pulumi.runtime.invoke(READ_STATE, {"stackName": _stack()}).value
        found = _by_name(answer["outputs"] or {})
    except Exception as error:  # the SDK raises nothing more precise
        pulumi.log.warn(
            "this stack's state cannot be read, so nothing that earlier runs made is made anew, however old it is:"
            f" {error}"
        )
        return PreviousRuns(bootstrapped=True)
    made = found.get(("Command", assets), {})
    access = found.get(("ClusterKeys", keys), {})
    machines = [each for each in found.values() if each.get("hostname")]
    return PreviousRuns(
        bootstrapped=("Gate", gate) in found,
        request=_request(made.get("stdin")) if made.get("stdout") else None,
        assets=str(made.get("stdout") or ""),
        public_key=str(access.get("publicKey") or ""),
        private_key=str(access.get("privateKey") or ""),
        host_key_seed=str(access.get("hostKeySeed") or ""),
        addresses={str(each["hostname"]): str(each["publicIpv4"]) for each in machines if each.get("publicIpv4")},
        has_control_plane=any(each["hostname"] == node.hostname for each in machines for node in control_plane),
        machines=_machines(found),
    )


def machines_in(stack: str) -> frozenset[str]:
    """The machines that a stack has in its state, by short host name; `stack`: `<organization>/<project>/<stack>`.
    Raises what the SDK raises where there is no such stack."""
    answer: Any = pulumi.runtime.invoke(READ_STATE, {"stackName": stack}).value
    return _machines(_by_name(answer["outputs"] or {}))


def has_output(stack: str, name: str) -> bool:
    """Whether another stack has an output. Raises what the SDK raises where there is no such stack."""
    answer: Any = pulumi.runtime.invoke(READ_OUTPUTS, {"name": stack}).value
    return (answer["outputs"] or {}).get(name) is not None


def _machines(found: Mapping[tuple[str, str], Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(str(each["hostname"]) for each in found.values() if each.get("hostname"))


def _stack() -> str:
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def _by_name(resources: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Outputs by kind and name. A URN is `urn:pulumi:<stack>::<project>::<types of parents>$<type>::<name>`, and a type
    `<package>:<module>:<kind>`."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for urn, resource in resources.items():
        _, _, types, name = urn.split("::", 3)
        found[types.rpartition(":")[2], name] = resource.get("outputs") or {}
    return found


def _request(text: Any) -> Mapping[str, Any]:
    """What the driver was given; nothing of it is trusted to be there."""
    try:
        tree: Any = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return cast("dict[str, Any]", tree) if isinstance(tree, dict) else {}
