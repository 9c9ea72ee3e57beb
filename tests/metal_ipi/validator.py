"""Compares values with what the schema says of them, as language hosts do before they ask for anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_REFERENCE = re.compile(r"\$\{[^}]+\}")
_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


def problems(schema: Mapping[str, Any], token: str, properties: Mapping[str, Any]) -> list[str]:
    """What is wrong with the properties of a resource."""
    resource = schema["resources"].get(token)
    if resource is None:
        return [f"there is no {token}"]
    described = {"properties": resource["inputProperties"], "required": resource["requiredInputs"]}
    return list(_object(schema, described, properties, token))


def _object(schema: Mapping[str, Any], described: Mapping[str, Any], given: Any, path: str) -> Iterator[str]:
    if not isinstance(given, Mapping):
        yield f"{path} is not an object"
        return
    yield from (f"{path}.{name} is missing" for name in described["required"] if name not in given)
    for name, value in given.items():
        if name in described["properties"]:
            yield from _value(schema, described["properties"][name], value, f"{path}.{name}")
        else:
            yield f"{path}.{name} does not exist"


def _value(schema: Mapping[str, Any], wanted: Mapping[str, Any], given: Any, path: str) -> Iterator[str]:
    if (isinstance(given, str) and _REFERENCE.fullmatch(given)) or wanted.get("$ref") == "pulumi.json#/Any":
        return
    reference = wanted.get("$ref")
    if "discriminator" in wanted:
        kind = given.get(wanted["discriminator"]["propertyName"]) if isinstance(given, Mapping) else None
        reference = wanted["discriminator"]["mapping"].get(kind)
        if reference is None:
            yield f"{path} is of no kind there is"
            return
    if reference is not None:
        yield from _object(schema, schema["types"][reference.removeprefix("#/types/")], given, path)
    elif "additionalProperties" in wanted and isinstance(given, Mapping):
        for name, value in given.items():
            yield from _value(schema, wanted["additionalProperties"], value, f"{path}.{name}")
    elif "items" in wanted and isinstance(given, list):
        for number, value in enumerate(given):
            yield from _value(schema, wanted["items"], value, f"{path}[{number}]")
    elif not isinstance(given, _KINDS.get(wanted["type"], ())) or isinstance(given, bool) != (
        wanted["type"] == "boolean"
    ):
        yield f"{path} is not a {wanted['type']}"
