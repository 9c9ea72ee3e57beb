"""The provider for the engine: turns its requests into operations of the resource types.

Secret property values stay secret: inputs are copied to the outputs unchanged, and computed secrets are marked.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pulumi.provider.experimental import provider as sdk
from pulumi.provider.experimental.property_value import PropertyValue

from metal_ipi.provider import configuration
from metal_ipi.provider.artifacts import Artifacts
from metal_ipi.provider.cluster_keys import ClusterKeys
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.cost import function as cost
from metal_ipi.provider.dns_records import DnsRecords
from metal_ipi.provider.ephemeral_machine import EphemeralMachine
from metal_ipi.provider.errors import InitFailed, InvalidInputs
from metal_ipi.provider.failures import Failures
from metal_ipi.provider.gate import Gate
from metal_ipi.provider.inputs import Problem
from metal_ipi.provider.installation import Installation, InstallationPool, Pools
from metal_ipi.provider.ironic_machine import IronicMachine
from metal_ipi.provider.lifetime import Lifetime
from metal_ipi.provider.mirror import Mirror
from metal_ipi.provider.node_marks import NodeMarks
from metal_ipi.provider.preflight.resource import Preflight
from metal_ipi.provider.redfish_machine import RedfishMachine
from metal_ipi.provider.removal import Removal
from metal_ipi.provider.resource import Changes, Context, Kind, ResourceType, Values
from metal_ipi.provider.service_credentials import ServiceCredentials
from metal_ipi.provider.spot_machine import SpotMachine
from metal_ipi.provider.status import Log, NoLog, Status
from metal_ipi.provider.values import has_unknown, to_python_map, to_wire_map

VERSION = "0.1.0"
NAME = "metal-ipi"

Properties = dict[str, PropertyValue]


def resource_types() -> dict[str, ResourceType]:
    """All resource types, by token, for one update: they remember what it declared and what failed."""
    failures, pools = Failures(), Pools()
    types: list[ResourceType] = [
        ClusterKeys(),
        ServiceCredentials(),
        DnsRecords(),
        Artifacts(),
        Mirror(),
        Lifetime(),
        EphemeralMachine(),
        SpotMachine(),
        RedfishMachine(),
        IronicMachine(),
        Gate(failures),
        Removal(),
        InstallationPool(pools),
        Installation(failures=failures, pools=pools),
        NodeMarks(),
        Preflight(),
    ]
    return {item.token: item for item in types}


class MetalIpiProvider(sdk.Provider):
    """All resource types as one provider."""

    def __init__(self, log: Log | None = None) -> None:
        self._types = resource_types()
        self._settings = Settings()
        self._declared: set[str] = set()
        """URNs that the program has declared. A plugin process lives as long as one update; a destroy runs no
        program."""
        self.log: Log = log or NoLog()

    def _type(self, token: str) -> ResourceType:
        # A URN contains the types of all parents: metal-ipi:endpoints:ClusterDns$metal-ipi:index:DnsRecords.
        own = token.rpartition("$")[2]
        found = self._types.get(own)
        if found is None:
            raise InvalidInputs(f"{own} is not a resource type of {NAME}; known are {', '.join(sorted(self._types))}")
        return found

    def _context(self, urn: str) -> Context:
        return Context(urn=urn, settings=self._settings, status=Status(self.log, urn))

    async def get_schema(self, request: sdk.GetSchemaRequest) -> sdk.GetSchemaResponse:
        return sdk.GetSchemaResponse(Path(__file__).with_name("schema.json").read_text())

    async def check_config(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        _, problems = configuration.parse(to_python_map(request.new_inputs))
        return sdk.CheckResponse(inputs=request.new_inputs, failures=_failures(problems))

    async def configure(self, request: sdk.ConfigureRequest) -> sdk.ConfigureResponse:
        self._settings, problems = configuration.parse(to_python_map(request.args))
        if problems:
            raise InvalidInputs("; ".join(f"{problem.path} {problem.reason}" for problem in problems))
        # Outputs are refused: the SDK (3.256.0) cannot read an unknown one (PropertyValue.unmarshal wants a value).
        return sdk.ConfigureResponse(accept_secrets=True, supports_preview=True)

    async def invoke(self, request: sdk.InvokeRequest) -> sdk.InvokeResponse:
        if request.tok != cost.TOKEN:
            raise InvalidInputs(f"{request.tok} is not a function of {NAME}; known is {cost.TOKEN}")
        inputs = to_python_map(request.args)
        if problems := cost.check(inputs):
            return sdk.InvokeResponse(failures=_failures(problems))
        return sdk.InvokeResponse(to_wire_map(await cost.cost(self._settings, inputs)))

    async def check(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        self._declared.add(request.urn)
        problems = self._type(request.type).check(to_python_map(request.new_inputs))
        return sdk.CheckResponse(inputs=request.new_inputs, failures=_failures(problems))

    async def diff(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        old, new = to_python_map(request.old_state), to_python_map(request.new_inputs)
        for path in request.ignore_changes:
            if path in old:
                new[path] = old[path]
        context = self._context(request.urn)
        found = self._type(request.type).diff(context, old, new)
        if found.warning:
            await context.status.warn(found.warning)
        return _diff_response(found)

    async def create(self, request: sdk.CreateRequest) -> sdk.CreateResponse:
        item, context, inputs = self._type(request.type), self._context(request.urn), to_python_map(request.properties)
        if request.preview:
            return sdk.CreateResponse("", _state(item, request.properties, item.preview(context, None, inputs)))
        _refuse_unknown(inputs)
        with _keeping_inputs(item, request.properties):
            made = await item.create(context, inputs)
        return sdk.CreateResponse(made.id, _state(item, request.properties, made.outputs))

    async def update(self, request: sdk.UpdateRequest) -> sdk.UpdateResponse:
        item, context = self._type(request.type), self._context(request.urn)
        old, new = to_python_map(request.olds), to_python_map(request.news)
        if request.preview:
            return sdk.UpdateResponse(_state(item, request.news, item.preview(context, old, new)))
        _refuse_unknown(new)
        with _keeping_inputs(item, request.news):
            outputs = await item.update(context, request.resource_id, old, new)
        return sdk.UpdateResponse(_state(item, request.news, outputs))

    async def read(self, request: sdk.ReadRequest) -> sdk.ReadResponse:
        item, context = self._type(request.type), self._context(request.urn)
        if not request.properties:
            raise InvalidInputs(f"{request.type} cannot be imported: it can only be refreshed from its own state")
        old = to_python_map({**request.inputs, **request.properties})
        changed = await item.read(context, request.resource_id, old)
        if changed is None:
            return sdk.ReadResponse()
        properties = {**request.properties, **to_wire_map(changed)}
        return sdk.ReadResponse(request.resource_id, properties, request.inputs)

    async def delete(self, request: sdk.DeleteRequest) -> None:
        item, context = self._type(request.type), self._context(request.urn)
        # A resource that is replaced was declared before its old version is deleted, unless deletion comes first.
        context = replace(context, given_up=bool(self._declared) and request.urn not in self._declared)
        await item.delete(context, request.resource_id, to_python_map(request.properties))


def _state(item: ResourceType, inputs: Properties, outputs: Values) -> Properties:
    """Inputs and outputs together, for the state; a computed property overrides an input of the same name."""
    kept = {key: value for key, value in inputs.items() if key not in item.hidden_inputs}
    return {**kept, **to_wire_map(outputs)}


@contextmanager
def _keeping_inputs(item: ResourceType, inputs: Properties) -> Generator[None]:
    """Add the inputs to the state of something that was made but not finished."""
    try:
        yield
    except InitFailed as error:
        state = _state(item, inputs, error.outputs)
        raise InitFailed(str(error), error.resource_id, dict[str, Any](state)) from error


def _failures(problems: list[Problem]) -> list[sdk.CheckFailure]:
    return [sdk.CheckFailure(problem.path, problem.reason) for problem in problems]


def _diff_response(found: Changes) -> sdk.DiffResponse:
    detailed = {
        path: sdk.PropertyDiff(_kind(kind, replaces=path in found.replaces), input_diff=True)
        for path, kind in found.changes.items()
    }
    return sdk.DiffResponse(
        changes=bool(found.changes),
        replaces=sorted(found.replaces),
        diffs=sorted({path.split("[")[0].split(".")[0] for path in found.changes}),
        detailed_diff=detailed,
    )


def _kind(kind: Kind, *, replaces: bool) -> sdk.PropertyDiffKind:
    return sdk.PropertyDiffKind[f"{kind.upper()}_REPLACE" if replaces else kind.upper()]


def _refuse_unknown(values: Values) -> None:
    for key, value in values.items():
        if has_unknown(value):
            raise InvalidInputs(f"{key} is still not known: an input of this resource was never resolved")
