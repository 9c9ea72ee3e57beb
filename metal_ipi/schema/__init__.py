"""The package schema for the engine and for SDK generators: `schema()`, stored in provider/schema.json."""

from __future__ import annotations

from typing import Any

from metal_ipi.exported import CLUSTER, COMPONENTS
from metal_ipi.provider.plugin import NAME, VERSION
from metal_ipi.schema import declared, settings

_SDKS = ("nodejs", "python", "csharp", "java", "go")


def schema() -> dict[str, Any]:
    """The whole schema. Raises SchemaError if an annotation cannot be expressed in it."""
    types = declared.Types()
    types.found |= settings.types()
    components = {token: _component(token, types) for token in COMPONENTS}
    resources = {**components, **declared.resources(types)}
    return {
        "name": NAME,
        "version": VERSION,
        "displayName": NAME,
        "description": "OpenShift and OKD on bare metal",
        "config": {"variables": declared.configuration(types)},
        "provider": {"description": declared.PROVIDER, "inputProperties": declared.configuration(types)},
        "resources": dict(sorted(resources.items())),
        "functions": declared.functions(),
        "types": dict(sorted(types.found.items())),
        "language": {name: {"respectSchemaVersion": True} for name in _SDKS},
    }


def _component(token: str, types: declared.Types) -> dict[str, Any]:
    exported = COMPONENTS[token]()
    described = declared.resource(exported.component, exported.args, types)
    if token == CLUSTER:
        described |= settings.inputs()
    return {"isComponent": True, **described}
