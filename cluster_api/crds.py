"""The CustomResourceDefinitions, from the models: `python -m metal_ipi.cluster_api.crds` prints them as YAML."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, cast

import yaml
from pydantic import BaseModel

from metal_ipi.cluster_api.api import Resource
from metal_ipi.cluster_api.resources import KINDS, MOVE_LABEL, VERSION, Kind
from metal_ipi.cluster_api.resources.base import Metadata

Tree = dict[str, Any]
_DROPPED = ("title", "$defs", "default")


def definitions() -> list[Tree]:
    """All of them, each kind and its template."""
    return [each for kind in KINDS for each in (_kind(kind), _template(kind))]


def _kind(kind: Kind) -> Tree:
    subresources: Tree = {"status": {}}
    if kind.replicas:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    schema = {"spec": _schema(kind.spec), "status": _schema(kind.status)}
    columns = [{"name": name, "type": "string", "jsonPath": path} for name, path in kind.columns]
    more: Tree = {"subresources": subresources, "additionalPrinterColumns": columns}
    return _definition(kind, kind.resource, schema, more)


def _template(kind: Kind) -> Tree:
    inner: Tree = {
        "type": "object",
        "required": ["spec"],
        "properties": {"metadata": _schema(Metadata), "spec": _schema(kind.spec)},
    }
    spec = {"type": "object", "required": ["template"], "properties": {"template": inner}}
    definition = _definition(kind, kind.template, {"spec": spec}, {})
    definition["metadata"]["labels"][MOVE_LABEL] = ""  # who refers to a template is not always its owner
    return definition


def _definition(kind: Kind, resource: Resource, parts: Mapping[str, Tree], more: Tree) -> Tree:
    properties: Tree = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema = {"type": "object", "properties": {**properties, **parts}, "required": ["spec"]}
    version = {"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            "labels": {"cluster.x-k8s.io/provider": kind.provider, "cluster.x-k8s.io/v1beta2": VERSION},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "categories": ["cluster-api"],
            },
            "versions": [version],
        },
    }


def _schema(model: type[BaseModel]) -> Tree:
    """A structural schema: it has no references, and optional fields are not nullable."""
    whole = model.model_json_schema(by_alias=True)
    return cast(Tree, _plain(whole, whole.get("$defs") or {}))


def _plain(node: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(item, parts) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    tree = cast(Tree, node)
    if "$ref" in tree:
        return {**_plain(parts[str(tree["$ref"]).rpartition("/")[2]], parts), **_described(tree)}
    if "anyOf" in tree:
        (kept,) = (each for each in tree["anyOf"] if each.get("type") != "null")
        return {**_plain(kept, parts), **_described(tree)}
    result = {key: _plain(value, parts) for key, value in tree.items() if key not in _DROPPED}
    if "properties" in tree:
        result["properties"] = {name: _plain(value, parts) for name, value in tree["properties"].items()}
    extra = result.get("additionalProperties")
    if extra is False:  # the API server drops what is not known, and says so
        del result["additionalProperties"]
    elif extra is True:
        del result["additionalProperties"]
        result["x-kubernetes-preserve-unknown-fields"] = True
    default = tree.get("default")
    if isinstance(default, (int, str)) and default not in ("", 0, False):
        result["default"] = default
    if isinstance(result.get("type"), str) and result["type"] == "integer":
        result["format"] = "int64"
    return result


def _described(tree: Tree) -> Tree:
    return {"description": tree["description"]} if "description" in tree else {}


if __name__ == "__main__":
    yaml.safe_dump_all(definitions(), sys.stdout, sort_keys=False)
