"""The schema of what is declared with data classes: resources (`provider.types`) and components."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from metal_ipi.annotations import Shape, camel, fields, hints_of, is_map, items, outputs, secrets, shape
from metal_ipi.schema import docs
from provider import types as ours
from provider.plugin import NAME

Property = dict[str, Any]
PROVIDER = docs.of(ours.ProviderArgs)
_ANY: Property = {"$ref": "pulumi.json#/Any"}
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}
_SECRET = re.compile(r"\bsecret\b", re.IGNORECASE)
_GATE_SPEC = """What to wait for; what it holds depends on `kind`. These may stand in each, and say whose logs are
gathered when it fails: `nodes` (a list of `name`, `address`, `hostKey`, `machineId`?, `console`?, `port`?), `user`,
`privateKey`, `logDirectory`.
- `ssh-reachable`: these only.
- `machine-config-access`: `program`, `networks`, `addresses`?.
- `address-announced`: `address`, `mode`, `program`, `from` (nodes that let go of it).
- `api-answers`: `url`, `caPem`.
- `bootstrap-complete`, `install-complete`: `url`, `caPem`, `clientCertPem`, `clientKeyPem`.
- `nodes-ready`: the same, `names`, `addresses`?. Secret."""
_COST = {
    "currency": "string",
    "hourly": "number",
    "monthly": "number",
    "hoursPerMonth": "number",
    "installing": "number",
    "source": "string",
}


class SchemaError(TypeError):
    """An annotation that no other language can have."""


class Types:
    """The object types that were needed so far, by token."""

    def __init__(self) -> None:
        self.found: dict[str, Property] = {}

    def property_of(self, its: Shape, *, description: str = "", secret: bool = False) -> Property:
        """A property of a shape."""
        kinds = [self._kind(kind) for kind in its.kinds]
        unique = [kind for number, kind in enumerate(kinds) if kind not in kinds[:number]]
        found = unique[0] if len(unique) == 1 else {"oneOf": unique}
        flags = {**({"plain": True} if its.plain else {}), **({"description": description} if description else {})}
        return {**found, **flags, **({"secret": True} if secret else {})}

    def _kind(self, kind: Any) -> Property:
        if kind in _PLAIN:
            return {"type": _PLAIN[kind]}
        if get_origin(kind) is Literal:
            return {"type": _PLAIN[type(get_args(kind)[0])]}
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            return {"$ref": f"#/types/{self._object(kind)}"}
        inner = items(kind)
        if inner is None:
            if kind is Any or getattr(kind, "_is_protocol", False):
                return _ANY
            raise SchemaError(f"{kind} has no form in other languages")
        held = {key: value for key, value in self.property_of(shape(inner)).items() if key != "plain"}
        return {"type": "object", "additionalProperties": held} if is_map(kind) else {"type": "array", "items": held}

    def _object(self, kind: type) -> str:
        room, _, rest = kind.__module__.partition(".")
        module = rest.partition(".")[0] if room == "components" else "index"
        token = f"{NAME}:{module}:{kind.__name__.removesuffix('Args')}"
        if token not in self.found:
            self.found[token] = {}  # it may hold itself
            self.found[token] = {"type": "object", "description": docs.of(kind), **self.members(kind)}
        return token

    def members(self, kind: type) -> dict[str, Any]:
        """`properties` and `required` of a data class."""
        told = docs.of_members(kind)
        known, said = fields(kind), _said(kind, told)
        return {
            "properties": {
                each.wire: self.property_of(
                    each.shape, description=told.get(each.name, ""), secret=each.secret or each.name in said
                )
                for each in known
            },
            "required": sorted(each.wire for each in known if each.required),
        }


def _said(kind: type, told: Mapping[str, str]) -> frozenset[str]:
    """What the descriptions of our resources call secret: their fields do not declare it yet."""
    if not kind.__module__.startswith("provider."):
        return frozenset()
    return frozenset(name for name, text in told.items() if _SECRET.search(text))


def resource(made: type, args: type | None, types: Types) -> dict[str, Any]:
    """A component, or a resource, with the arguments that it is made with."""
    told = docs.of_members(made)
    found = {name: shape(hint) for name, hint in outputs(made).items()}
    hidden = secrets(made) | _said(made, told)
    inputs = types.members(args) if args is not None else {"properties": {}, "required": []}
    return {
        "description": docs.of(made),
        "properties": {
            camel(name): types.property_of(
                dataclasses.replace(its, plain=False), description=told.get(name, ""), secret=name in hidden
            )
            for name, its in found.items()
        },
        "required": sorted(camel(name) for name, its in found.items() if not its.optional),
        "inputProperties": inputs["properties"],
        "requiredInputs": inputs["required"],
    }


def resources(types: Types) -> dict[str, dict[str, Any]]:
    """Every resource, by token."""
    kinds: Mapping[type, tuple[type, ...]] = {
        ours.ClusterKeys: (ours.ClusterKeysArgs,),
        ours.DnsRecords: (ours.DnsRecordsArgs,),
        ours.Artifacts: (ours.ArtifactsArgs,),
        ours.Mirror: (ours.MirrorArgs,),
        ours.EphemeralMachine: (ours.EphemeralMachineArgs, ours.LentServerArgs, ours.LocalVmArgs),
        ours.Lifetime: (),
        ours.SpotMachine: (ours.SpotMachineArgs,),
        ours.Preflight: (ours.Plan,),
        ours.RedfishMachine: (ours.RedfishMachineArgs,),
        ours.Gate: (ours.GateArgs,),
        ours.Installation: (ours.InstallationArgs,),
        ours.Removal: (ours.RemovalArgs,),
    }
    return {f"{NAME}:index:{made.__name__}": _resource(made, args, types) for made, args in kinds.items()}


def _resource(made: type, args: tuple[type, ...], types: Types) -> dict[str, Any]:
    """A resource; with arguments of several kinds it takes all of them, and needs what they have in common."""
    described = resource(made, None, types)
    parts = [types.members(each) for each in args]
    given: dict[str, Property] = {}
    for part in reversed(parts):
        given |= part["properties"]
    needed = set[str].intersection(*(set(part["required"]) for part in parts)) if parts else set[str]()
    if made is ours.Gate:
        given["spec"] = {"type": "object", "additionalProperties": _ANY, "description": _GATE_SPEC, "secret": True}
        given["kind"] = {"type": "string", "description": "The kind of what to wait for."}
        needed.add("kind")
    elif made is ours.Lifetime:
        given, needed = {"hours": {"type": "integer", "description": "How long, from the first `up` on."}}, {"hours"}
    elif made is ours.DnsRecords:
        given["records"] = {**given["records"], "type": "object", "additionalProperties": given["records"]["items"]}
        given["records"] |= {"description": "The values to own, by labels that previews show; no (name, type) twice."}
        del given["records"]["items"]
    elif made is ours.EphemeralMachine:
        needed.add("platform")
        given["platform"] = {
            "type": "string",
            "description": "`equinix-metal`; `redfish`: a server that is lent; `local-vm`: libvirt's virtual machine.",
        }
    # Resources wait for whatever they are given.
    plain = {name: {key: value for key, value in each.items() if key != "plain"} for name, each in given.items()}
    return {**described, "inputProperties": plain, "requiredInputs": sorted(needed)}


def configuration(types: Types) -> dict[str, Property]:
    """The provider's: each section is one JSON string."""
    told = docs.of_members(ours.ProviderArgs)
    return {
        each.wire: {"type": "string", "secret": True, "description": f"JSON. {told[each.name]}"}
        for each in fields(ours.ProviderArgs)
    }


def functions() -> dict[str, Any]:
    """What can be asked."""
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
