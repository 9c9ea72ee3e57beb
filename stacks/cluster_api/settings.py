"""From a stack's settings, as in the stack file, to the settings in the objects on the hub. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from metal_ipi.components.cluster_api import objects
from metal_ipi.stacks.problems import SECRET_NAMES, SECRET_SECTIONS

Tree = dict[str, Any]

NOT_OF_THE_CLUSTER = ("clusterApi", "lab", "rehearsal")
"""Settings that only the stack itself uses."""


def without_secrets(tree: Mapping[str, Any]) -> tuple[Tree, dict[str, Any]]:
    """Split the settings: those without secrets; and the secrets, by paths that are valid keys of a Kubernetes Secret
    (`platform.servers.0.bmc.password`). Settings that only the stack uses are left out, and so is `install.manifests`:
    the folders are on this machine, and Secrets stand for them."""
    secrets: dict[str, Any] = {}
    kept = {name: value for name, value in tree.items() if name not in NOT_OF_THE_CLUSTER}
    if isinstance(install := kept.get("install"), Mapping):
        own = cast("Mapping[str, Any]", install)
        kept["install"] = {name: value for name, value in own.items() if name != "manifests"}
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
        return set(cast(Tree, item)) == {"secure"}  # an encrypted value in a stack file
    return name in SECRET_NAMES and not isinstance(item, list)


def cluster_template() -> str:
    """clusterctl's cluster-template.yaml."""
    return objects.template()
