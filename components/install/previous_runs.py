"""What earlier runs left in this stack's state, read before this run declares any resource.

Pulumi passes only a resource's own state to it, and the installer's assets come before the resources whose state tells
how far the installation is. So the program asks the engine for its own stack's state: `readStackResourceOutputs`, a
function of the engine's builtin provider (pulumi/pulumi, pkg/resource/deploy/builtins.go). It works in previews too,
and with every backend.
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
READ = frozenset({"hostname", "publicIpv4", "stdin", "stdout", "publicKey", "privateKey", "hostKeySeed"})
"""The outputs of resources that are read here; others are not even looked at, so nobody needs to give them."""


@dataclass(frozen=True, kw_only=True)
class PreviousRuns:
    """How far earlier runs came, and from what they created the installer's assets."""

    bootstrapped: bool
    """Whether the gate `bootstrap-complete` has passed, after which there is a cluster."""
    request: Mapping[str, Any] | None = None
    """The driver's request for the assets; secret. None: there are no assets."""
    assets: str = ""
    """The driver's output; secret."""
    public_key: str = ""
    """The cluster's public SSH key."""
    private_key: str = ""
    """The private SSH key of the cluster's machines; secret."""
    host_key_seed: str = ""
    """The seed from which their host keys are derived; secret."""
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])
    """Public addresses of machines, by short host name."""
    has_control_plane: bool = False
    """Whether a control plane machine was ordered or claimed."""
    machines: frozenset[str] = frozenset()
    """All machines in the state, by short host name."""


def previous_runs(*, assets: str, gate: str, keys: str, control_plane: Sequence[Node]) -> PreviousRuns:
    """Read the state of the resources with these names, and of all machines.

    If the state cannot be read, the cluster counts as formed, so that nothing is created again.
    """
    try:
        answer: Any = pulumi.runtime.invoke(READ_STATE, {"stackName": _stack()}).value
        found = _by_name(answer["outputs"] or {})
    except Exception as error:  # the SDK raises no narrower class
        pulumi.log.warn(
            "this stack's state cannot be read, so nothing that earlier runs made is renewed, whatever its age: "
            f"{error}"
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
    """The machines in a stack's state, by short host name. `stack` is `<organization>/<project>/<stack>`.

    Raises the SDK's exception if there is no such stack.
    """
    answer: Any = pulumi.runtime.invoke(READ_STATE, {"stackName": stack}).value
    return _machines(_by_name(answer["outputs"] or {}))


def has_output(stack: str, name: str) -> bool:
    """Whether another stack has an output. Raises the SDK's exception if there is no such stack."""
    answer: Any = pulumi.runtime.invoke(READ_OUTPUTS, {"name": stack}).value
    return (answer["outputs"] or {}).get(name) is not None


def _machines(found: Mapping[tuple[str, str], Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(str(each["hostname"]) for each in found.values() if each.get("hostname"))


def _stack() -> str:
    return f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"


def _by_name(resources: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Outputs of resources by (type, name).

    A URN is `urn:pulumi:<stack>::<project>::<types of parents>$<type>::<name>`, a type is `<package>:<module>:<kind>`.
    """
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for urn, resource in resources.items():
        _, _, types, name = urn.split("::", 3)
        outputs: Mapping[str, Any] = resource.get("outputs") or {}
        found[types.rpartition(":")[2], name] = {each: outputs[each] for each in READ & outputs.keys()}
    return found


def _request(text: Any) -> Mapping[str, Any]:
    """The driver's request as a mapping; empty if the text is not one."""
    try:
        tree: Any = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return cast("dict[str, Any]", tree) if isinstance(tree, dict) else {}
