"""From a stack's settings, as the stack file has them, to what the objects on the hub say. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from metal_ipi.components.cluster_api import objects
from metal_ipi.stacks.problems import SECRET_NAMES, SECRET_SECTIONS

Tree = dict[str, Any]

NOT_OF_THE_CLUSTER = ("clusterApi", "lab", "rehearsal")
"""What only the stack itself needs to know."""


def without_secrets(tree: Mapping[str, Any]) -> tuple[Tree, dict[str, Any]]:
    """The settings without their secrets, and these by their paths as keys of a Secret can be:
    `platform.servers.0.bmc.password`. What only the stack needs is left out."""
    secrets: dict[str, Any] = {}
    kept = {name: value for name, value in tree.items() if name not in NOT_OF_THE_CLUSTER}
    return cast(Tree, _public(kept, "", secrets)), secrets


def _public(value: Any, path: str, secrets: dict[str, Any]) -> Any:
    if isinstance(value, Mapping):
        result: Tree = {}
        for name, item in cast("Mapping[str, Any]", value).items():
            place = f"{path}.{name}" if path else name
            if path in SECRET_SECTIONS or _is_secret(name, item):
                secrets[place] = item
            else:
                result[name] = _public(item, place, secrets)
        return result
    if isinstance(value, list):
        return [_public(item, f"{path}.{number}", secrets) for number, item in enumerate(cast("list[Any]", value))]
    return value


def _is_secret(name: str, item: Any) -> bool:
    if isinstance(item, Mapping):
        return set(cast(Tree, item)) == {"secure"}  # encrypted, in a stack file
    return name in SECRET_NAMES and not isinstance(item, list)


def cluster_template() -> str:
    """clusterctl's cluster-template.yaml."""
    return objects.template()
