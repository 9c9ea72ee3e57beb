"""The life of a command: it runs when it is made, and again when one of its inputs changed."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue

from lab.plugins.base import EngineLog, Properties, Resource
from lab.plugins.command.local import run_local
from lab.plugins.command.outcome import Run
from lab.plugins.fields import ABSENT, TEXT, Field, problems
from lab.plugins.values import diff_response, differences, plain, plain_map, unknown

INPUTS: Mapping[str, Field] = {
    "create": TEXT,
    "triggers": Field(kind="list", replace=True),
    "stdin": TEXT,
    "logging": Field(choices=("stdout", "stderr", "stdoutAndStderr", "none")),
    # What the run before printed may be larger than a variable may be.
    "addPreviousOutputInEnv": Field(kind="boolean", required=True, only=(False,)),
    "dir": TEXT,
    "environment": Field(kind="map", element=TEXT),
    **dict.fromkeys(("update", "delete", "assetPaths", "archivePaths", "interpreter"), ABSENT),
}
OUTPUTS = ("stdout", "stderr")


class Command(Resource):
    """`local.Command`."""

    def __init__(self, log: EngineLog) -> None:
        self._log = log

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Unknown names and wrong types are refused."""
        failures = list(problems("command", INPUTS, request.new_inputs))
        return api.CheckResponse(request.new_inputs, failures)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """Only a list of triggers that comes or goes replaces; the SDK adds `replaceOnChanges` for their values."""
        old = {name: value for name, value in request.old_state.items() if name in INPUTS}
        found = dict(differences(old, _inputs(request.new_inputs)))
        return diff_response(found, {path for path in found if path in INPUTS and INPUTS[path].replace})

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Runs the command, if there is one."""
        identifier = f"{request.name}{secrets.token_hex(4)}"
        outputs = {name: unknown() if request.preview else PropertyValue("") for name in OUTPUTS}
        state = {**request.properties, **outputs}
        return api.CreateResponse(identifier, state if request.preview else await self._run(request.urn, state))

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """There is nothing to look at: what was, is."""
        return api.ReadResponse(request.resource_id, request.properties, request.inputs)

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Runs the command once more."""
        inputs = _inputs(request.news)
        state = {**inputs, **{name: request.olds.get(name, PropertyValue("")) for name in OUTPUTS}}
        if not request.preview:
            return api.UpdateResponse(await self._run(request.urn, state))
        before = {name: value for name, value in request.olds.items() if name in INPUTS}
        changed = dict(differences(before, inputs))
        return api.UpdateResponse({**state, **{name: unknown() for name in OUTPUTS if changed}})

    async def delete(self, request: api.DeleteRequest) -> None:
        """There is nothing to undo."""

    async def _run(self, urn: str, state: Properties) -> Properties:
        command = state.get("create")
        if command is None or command.value is None:
            return state
        output = await run_local(
            Run(
                command=plain(command),
                secret=command.contains_secret(),
                inputs=plain_map(state),
                status=partial(self._log.status, urn),
            )
        )
        return {**state, "stdout": PropertyValue(output.stdout), "stderr": PropertyValue(output.stderr)}


def _inputs(values: Properties) -> Properties:
    return {name: value for name, value in values.items() if name != "version" and not name.startswith("__")}
