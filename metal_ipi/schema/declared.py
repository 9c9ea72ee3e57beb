"""The schema of everything that is declared with dataclasses: resources (`provider.types`) and components."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from metal_ipi.annotations import Shape, camel, fields, hints_of, is_map, items, outputs, shape
from metal_ipi.provider import types as ours
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.plugin import NAME
from metal_ipi.schema import docs

Property = dict[str, Any]
PROVIDER = docs.of(ours.ProviderArgs)
_ANY: Property = {"$ref": "pulumi.json#/Any"}
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}
_GATE_SPEC = """What to wait for; what it holds depends on `kind`. These may stand in each, and say whose logs are
gathered when it fails: `nodes` (a list of `name`, `address`, `hostKey`, `machineId`?, `console`?, `port`?), `user`,
`privateKey`, `logDirectory`.
- `ssh-reachable`: these only.
- `machine-config-access`: `program`, `networks`, `addresses`?.
- `address-announced`: `address`, `mode`, `program`, `from` (nodes that let go of it).
- `api-answers`: `url`, `caPem`.
- `bootstrap-complete`, `install-complete`: `url`, `caPem`, `clientCertPem`, `clientKeyPem`.
- `nodes-ready`: the same, `names`, `addresses`?."""
_COST = {
    "currency": "string",
    "hourly": "number",
    "monthly": "number",
    "hoursPerMonth": "number",
    "installing": "number",
    "source": "string",
}


class SchemaError(TypeError):
    """An annotation that cannot be expressed in a Pulumi schema."""


class Types:
    """Collects the object types in use, by token."""

    def __init__(self) -> None:
        self.found: dict[str, Property] = {}

    def property_of(self, its: Shape, *, description: str = "") -> Property:
        """The property for an annotation."""
        kinds = [self._kind(kind) for kind in its.kinds]
        unique = [kind for number, kind in enumerate(kinds) if kind not in kinds[:number]]
        found = unique[0] if len(unique) == 1 else {"oneOf": unique}
        plain = {"plain": True} if its.plain else {}
        secret = {"secret": True} if its.secret else {}
        return {**found, **plain, **_described(description), **secret}

    def _kind(self, kind: Any) -> Property:
        if kind in _PLAIN:
            return {"type": _PLAIN[kind]}
        if get_origin(kind) is Literal:
            return {"type": _PLAIN[type(get_args(kind)[0])]}
        if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, Inputs)):
            return {"$ref": f"#/types/{self._object(kind)}"}
        inner = items(kind)
        if inner is None:
            if kind is Any or getattr(kind, "_is_protocol", False):
                return _ANY
            raise SchemaError(f"{kind} has no form in other languages")
        # Secret and plain apply to the whole list or map, not to its items.
        held = {k: v for k, v in self.property_of(shape(inner)).items() if k not in ("plain", "secret")}
        return {"type": "object", "additionalProperties": held} if is_map(kind) else {"type": "array", "items": held}

    def _object(self, kind: type) -> str:
        room, _, rest = kind.__module__.removeprefix("metal_ipi.").partition(".")
        module = rest.partition(".")[0] if room == "components" else "index"
        token = f"{NAME}:{module}:{kind.__name__.removesuffix('Args')}"
        if token not in self.found:
            self.found[token] = {}  # set before its members are read, because it may contain itself
            self.found[token] = {"type": "object", "description": docs.of(kind), **self.members(kind)}
        return token

    def members(self, kind: type) -> dict[str, Any]:
        """`properties` and `required` of a dataclass."""
        descriptions = docs.of_members(kind)
        known = fields(kind)
        return {
            "properties": {
                each.wire: self.property_of(each.shape, description=descriptions.get(each.name, "")) for each in known
            },
            "required": sorted(each.wire for each in known if each.required),
        }


def _described(text: str) -> Property:
    return {"description": text} if text else {}


def resource(made: type, args: type | None, types: Types) -> dict[str, Any]:
    """The schema of a component or resource, with the arguments that it takes."""
    descriptions = docs.of_members(made)
    found = {name: shape(hint) for name, hint in outputs(made).items()}
    inputs = types.members(args) if args is not None else {"properties": {}, "required": []}
    return {
        "description": docs.of(made),
        "properties": {
            camel(name): types.property_of(
                dataclasses.replace(its, plain=False), description=descriptions.get(name, "")
            )
            for name, its in found.items()
        },
        "required": sorted(camel(name) for name, its in found.items() if not its.optional),
        "inputProperties": inputs["properties"],
        "requiredInputs": inputs["required"],
    }


def resources(types: Types) -> dict[str, dict[str, Any]]:
    """All resources, by token."""
    kinds: Mapping[type, tuple[type, ...]] = {
        ours.ClusterKeys: (ours.ClusterKeysArgs,),
        ours.ServiceCredentials: (ours.ServiceCredentialsArgs,),
        ours.DnsRecords: (ours.DnsRecordsArgs,),
        ours.Artifacts: (ours.ArtifactsArgs,),
        ours.Mirror: (ours.MirrorArgs,),
        ours.EphemeralMachine: (ours.EphemeralMachineArgs, ours.LentServerArgs, ours.LentNodeArgs, ours.LocalVmArgs),
        ours.Lifetime: (ours.LifetimeArgs,),
        ours.IronicMachine: (ours.IronicMachineArgs,),
        ours.SpotMachine: (ours.SpotMachineArgs,),
        ours.Preflight: (ours.Plan,),
        ours.RedfishMachine: (ours.RedfishMachineArgs,),
        ours.Gate: (ours.GateArgs,),
        ours.Installation: (ours.InstallationArgs,),
        ours.InstallationPool: (ours.InstallationPoolArgs,),
        ours.NodeMarks: (ours.NodeMarksArgs,),
        ours.Removal: (ours.RemovalArgs,),
    }
    return {f"{NAME}:index:{made.__name__}": _resource(made, args, types) for made, args in kinds.items()}


def _resource(made: type, args: tuple[type, ...], types: Types) -> dict[str, Any]:
    """The schema of a resource. With several kinds of arguments, all are allowed and those in all kinds are
    required."""
    described = resource(made, None, types)
    parts = [types.members(each) for each in args]
    given: dict[str, Property] = {}
    for part in reversed(parts):
        given |= part["properties"]
    needed = set[str].intersection(*(set(part["required"]) for part in parts)) if parts else set[str]()
    if made is ours.Gate:
        given["spec"] = {"type": "object", "additionalProperties": _ANY, "secret": True, **_described(_GATE_SPEC)}
        needed.add("kind")
    elif made is ours.EphemeralMachine:
        needed.add("platform")
        given["platform"] = {
            "type": "string",
            "description": "`equinix-metal`; `redfish`: a server that is lent; `local-vm`: libvirt's virtual machine.",
        }
    # A resource accepts outputs for all inputs, so none is `plain`.
    plain = {name: {key: value for key, value in each.items() if key != "plain"} for name, each in given.items()}
    return {**described, "inputProperties": plain, "requiredInputs": sorted(needed)}


def configuration(types: Types) -> dict[str, Property]:
    """The provider's configuration: each section is one JSON string."""
    descriptions = docs.of_members(ours.ProviderArgs)
    return {
        each.wire: {"type": "string", "secret": True, "description": f"JSON. {descriptions[each.name]}"}
        for each in fields(ours.ProviderArgs)
    }


def functions() -> dict[str, Any]:
    """The provider's functions."""
    hints = hints_of(ours.cost)
    types = Types()
    given = {name: types.property_of(shape(hints[name])) for name in ("orders", "prices", "source")}
    return {
        f"{NAME}:index:cost": {
            "description": docs.of(ours.cost),
            "inputs": {
                "properties": {name: {k: v for k, v in each.items() if k != "plain"} for name, each in given.items()},
                "required": ["orders"],
            },
            "outputs": {
                "properties": {
                    **{name: {"type": kind} for name, kind in _COST.items()},
                    "unknown": {"type": "array", "items": {"type": "string"}},
                    "lines": {"type": "array", "items": _ANY},
                },
                "required": ["lines", "source", "unknown"],
            },
        }
    }
