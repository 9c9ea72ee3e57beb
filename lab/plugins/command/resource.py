"""The life of a command: which of create, update and delete runs when, and what it finds in its environment."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue

from lab.plugins.base import EngineLog, Properties, Resource
from lab.plugins.command.outcome import Run, Runner
from lab.plugins.fields import ABSENT, TEXT, Field, problems, with_defaults
from lab.plugins.values import diff_response, differences, plain, plain_map, unknown

_COMMON: Mapping[str, Field] = {
    "create": TEXT,
    "update": TEXT,
    "delete": TEXT,
    "triggers": Field(kind="list", replace=True),
    "stdin": TEXT,
    "logging": Field(choices=("stdout", "stderr", "stdoutAndStderr", "none")),
}
_CONNECTION: Mapping[str, Field] = {
    "host": Field(required=True),
    "port": Field(kind="number", default=22),
    "user": Field(default="root"),
    "privateKey": Field(secret=True, required=True),
    "hostKey": Field(required=True),
    "dialErrorLimit": Field(kind="integer", default=10),
    "perDialTimeout": Field(kind="integer", default=15),
    **dict.fromkeys(("password", "privateKeyPassword", "agentSocketPath", "proxy"), ABSENT),
}
LOCAL: Mapping[str, Field] = {
    **_COMMON,
    "dir": TEXT,
    "environment": Field(kind="map", element=TEXT),
    "addPreviousOutputInEnv": Field(kind="boolean"),
    **dict.fromkeys(("assetPaths", "archivePaths", "interpreter"), ABSENT),
}
REMOTE: Mapping[str, Field] = {
    **_COMMON,
    "connection": Field(kind="object", required=True, secret=True, fields=_CONNECTION),
    "environment": ABSENT,
    # Servers of nodes accept no variables.
    "addPreviousOutputInEnv": Field(kind="boolean", required=True, only=(False,)),
}

OUTPUTS = ("stdout", "stderr")


class Command(Resource):
    """`local.Command` and `remote.Command`; they differ in their inputs and in who runs the command."""

    def __init__(self, fields: Mapping[str, Field], runner: Runner, log: EngineLog) -> None:
        self._fields = fields
        self._runner = runner
        self._log = log

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Unknown names and wrong types are refused, the connection gets its defaults."""
        inputs = request.new_inputs
        failures = list(problems("command", self._fields, inputs))
        return api.CheckResponse(with_defaults(self._fields, inputs, note=False), failures)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """Only a list of triggers that comes or goes replaces; the SDK adds `replaceOnChanges` for their values."""
        old = {name: value for name, value in request.old_state.items() if name in self._fields}
        new = _without_ignored(_inputs(request.new_inputs), request.old_state, request.ignore_changes)
        found = dict(differences(old, new))
        return diff_response(found, {path for path in found if path in self._fields and self._fields[path].replace})

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Runs `create`, if there is one."""
        identifier = f"{request.name}{secrets.token_hex(4)}"
        outputs = {name: unknown() if request.preview else PropertyValue("") for name in OUTPUTS}
        state = {**request.properties, **outputs}
        if not request.preview:
            state = await self._run(request.urn, "create", state)
        return api.CreateResponse(identifier, state)

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """There is nothing to look at: what was, is."""
        return api.ReadResponse(request.resource_id, request.properties, request.inputs)

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Runs `update`, or `create` where there is none, with what the run before printed."""
        inputs = _without_ignored(_inputs(request.news), request.olds, request.ignore_changes)
        state = {**inputs, **{name: request.olds.get(name, PropertyValue("")) for name in OUTPUTS}}
        if request.preview:
            before = {name: value for name, value in request.olds.items() if name in self._fields}
            if dict(differences(before, inputs)):
                state.update({name: unknown() for name in OUTPUTS})
            return api.UpdateResponse(state)
        return api.UpdateResponse(
            await self._run(request.urn, "update" if _given(inputs, "update") else "create", state)
        )

    async def delete(self, request: api.DeleteRequest) -> None:
        """Runs `delete` as it was when the resource was last made or changed."""
        await self._run(request.urn, "delete", request.properties)

    async def _run(self, urn: str, which: str, state: Properties) -> Properties:
        if not _given(state, which):
            return state
        inputs = plain_map(state)
        previous: dict[str, str] = {}
        if inputs.get("addPreviousOutputInEnv") is not False:
            previous = {f"PULUMI_COMMAND_{name.upper()}": inputs[name] for name in OUTPUTS if inputs.get(name)}
        output = await self._runner(
            Run(
                command=plain(state[which]),
                secret=state[which].contains_secret(),
                inputs=inputs,
                previous=previous,
                status=partial(self._log.status, urn),
            )
        )
        return {**state, "stdout": PropertyValue(output.stdout), "stderr": PropertyValue(output.stderr)}


def _given(state: Properties, name: str) -> bool:
    return name in state and state[name].value is not None


def _inputs(values: Properties) -> Properties:
    return {name: value for name, value in values.items() if name != "version" and not name.startswith("__")}


def _without_ignored(inputs: Properties, old: Properties, ignored: list[str]) -> Properties:
    """Ignored inputs keep their old value; paths into an input are the engine's business, as officially."""
    return {**inputs, **{name: old[name] for name in ignored if name in old}}
