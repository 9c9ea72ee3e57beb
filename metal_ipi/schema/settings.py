"""The schema of a stack's settings: from pydantic's models to the arguments of `Cluster`."""

from __future__ import annotations

from functools import cache
from typing import Any

from metal_ipi.provider.plugin import NAME
from metal_ipi.stacks.settings import Settings

Property = dict[str, Any]
_REFERENCE = f"#/types/{NAME}:settings:"
_ANY: Property = {"$ref": "pulumi.json#/Any"}


def inputs() -> dict[str, Any]:
    """`inputProperties` and `requiredInputs` of `Cluster`."""
    known = _object(_models())
    return {"inputProperties": known["properties"], "requiredInputs": known["required"]}


def types() -> dict[str, Property]:
    """The types of the sections, by token."""
    return {f"{NAME}:settings:{name}": _object(model) for name, model in _sections().items() if _is_object(model)}


@cache
def _models() -> dict[str, Any]:
    return Settings.model_json_schema(ref_template=_REFERENCE + "{model}")


def _sections() -> dict[str, Any]:
    return _models()["$defs"]


def _is_object(model: dict[str, Any]) -> bool:
    """Whether its properties are declared; if not, it is a map."""
    return model["type"] == "object" and bool(model.get("properties"))


def _object(model: dict[str, Any]) -> Property:
    needed = {name for name, each in model["properties"].items() if "const" in each and name == "type"}
    return {
        "type": "object",
        "description": model.get("description", ""),
        "properties": {name: _property(each) for name, each in model["properties"].items()},
        "required": sorted({*model.get("required", ()), *needed}),
    }


def _property(model: dict[str, Any]) -> Property:
    """The property for one setting."""
    found = _kind(model)
    if "description" in model:
        found["description"] = model["description"]
    if "const" not in model and isinstance(model.get("default"), bool | int | float | str):
        found["description"] = f"{found.get('description', '')}; default: {model['default']}".removeprefix("; ")
    return found


def _kind(model: dict[str, Any]) -> Property:
    """The type of a setting. `null` is dropped: `required` says whether a setting may be left out."""
    if "$ref" in model:
        section = _sections()[model["$ref"].rpartition(":")[2]]
        return {"$ref": model["$ref"]} if _is_object(section) else _kind(section)
    if "anyOf" in model:
        (only,) = (each for each in model["anyOf"] if each.get("type") != "null")
        return _kind(only)
    if "oneOf" in model:
        return {
            "oneOf": [_kind(each) for each in model["oneOf"]],
            "discriminator": dict(model["discriminator"]),
        }
    kind = model.get("type")
    if kind == "array":
        return {"type": "array", "items": _kind(model["items"])}
    if kind == "object":
        held = model.get("additionalProperties", True)
        return {"type": "object", "additionalProperties": _ANY if held is True else _kind(held)}
    if kind is None:
        return dict(_ANY)
    secret = {"secret": True} if model.get("format") == "password" else {}
    const = {"const": model["const"]} if "const" in model and isinstance(model["const"], str) else {}
    return {"type": kind, **const, **secret}
