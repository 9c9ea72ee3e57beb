"""What the Terraform bridge does around every resource: names, defaults, comparison of state and inputs, previews."""

from __future__ import annotations

import hashlib
import json
import secrets
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import CheckFailure, PropertyDiffKind

from lab.plugins.base import EngineLog, PluginError, Properties, Resource
from lab.plugins.differences import diff_response, map_differences
from lab.plugins.equinix_metal.client import Client
from lab.plugins.fields import Field, problems, with_defaults
from lab.plugins.values import Json, contains_unknown, plain_map, unknown, wrap, wrap_map

TIMEOUTS_KEY = "e2bfb730-ecaa-11e6-8f88-34363bc7c4c0"
"""Under this name Terraform keeps timeouts in a resource's metadata."""

DEFAULT_TIMEOUT_SECONDS = 1200.0
EMPTY: tuple[Json, ...] = (None, "", False, 0)


class Bridged(Resource):
    """Subclasses say what the inputs are and talk to the API; everything is plain data there."""

    computed: ClassVar[tuple[str, ...]] = ()
    """Outputs that only the API knows."""
    optional: ClassVar[tuple[str, ...]] = ()
    """Inputs that the API fills in where the program says nothing: their absence is no change."""
    sensitive: ClassVar[tuple[str, ...]] = ()
    """Properties that are always secret, members of objects as `object.member`."""

    def __init__(self, fields: Mapping[str, Field], client: Client, log: EngineLog) -> None:
        self._fields = fields
        self._client = client
        self._log = log

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """What holds between inputs."""
        yield from ()

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """Whether an input that looks different is not."""
        return False

    def replaces(self, name: str, inputs: Mapping[str, Json]) -> bool:
        """Whether a change of this input takes a new resource."""
        return self._fields[name].replace

    @abstractmethod
    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """The resource's properties now, None when it is gone; `known` is what the API does not tell."""

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Defaults, and a name of its own for what has none."""
        inputs = with_defaults(self._fields, request.new_inputs, note=True)
        if "name" in self._fields and "name" not in request.new_inputs:
            inputs["name"] = wrap(_own_name(request))
            inputs["__defaults"] = wrap(sorted([*plain_map(inputs)["__defaults"], "name"]))
        failures = list(problems(self._fields, request.new_inputs)) or list(self.rules(plain_map(inputs)))
        return api.CheckResponse(inputs, failures)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """Inputs against the state: what is empty is absent, what the API filled in may stay."""
        state = plain_map(request.old_state)
        news = {name: value for name, value in request.new_inputs.items() if name not in request.ignore_changes}
        inputs = plain_map(news)
        found: dict[str, PropertyDiffKind] = {}
        for name in self._fields:
            if name in request.ignore_changes or (name in self.optional and not inputs.get(name)):
                continue
            old, new = _normal(state.get(name)), _normal(inputs.get(name))
            if name in news and contains_unknown(news[name]):
                found[name] = PropertyDiffKind.UPDATE if old is not None else PropertyDiffKind.ADD
            elif old != new and not self.same(name, state, inputs):
                found.update(_places(name, old, new, was=state.get(name), wanted=inputs.get(name)))
        replaces = {path for path in found if self.replaces(path.split(".")[0].split("[")[0], inputs)}
        return diff_response(found, replaces)

    def preview(self, inputs: Properties) -> Properties:
        """What is known of a resource before it is made."""
        own = {name: value for name, value in inputs.items() if name in self._fields}
        return {**{name: unknown() for name in self.computed}, **self.concealed(own)}

    def concealed(self, properties: Properties) -> Properties:
        """The properties with the always secret ones marked."""
        return {name: _conceal(name, value, self.sensitive) for name, value in properties.items()}

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """Inputs follow what was found, so that a drift shows at the next update; imports get what can be set."""
        known = plain_map(request.properties)
        state = await self.fetch(request.resource_id, known)
        if state is None:
            return api.ReadResponse("", {}, {})
        inputs = plain_map(request.inputs)
        names = [name for name in inputs if name in self._fields] if inputs else list(self._fields)
        for name in names:
            value = _normal(state.get(name))
            if name in inputs and not self.same(name, state, inputs) and value != _normal(inputs[name]):
                inputs[name] = state.get(name)
            elif name not in inputs and value is not None:
                inputs[name] = state[name]
        inputs.setdefault("__defaults", [])
        given = {name: value for name, value in inputs.items() if value is not None}
        return api.ReadResponse(request.resource_id, self.concealed(wrap_map(state)), self.concealed(wrap_map(given)))


class Unchanging(Bridged):
    """A resource of which every input takes a new one, as in Terraform those without an update."""

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Only asked for when it was not complete: look again."""
        olds = plain_map(request.olds)
        if request.preview:
            return api.UpdateResponse(self.concealed(request.olds))
        state = await self.fetch(request.resource_id, olds)
        if state is None:
            raise PluginError(f"{request.urn.rsplit('::', 1)[-1]} ({request.resource_id}) no longer exists: refresh")
        return api.UpdateResponse(self.concealed(wrap_map(state)))


def timeouts_meta(create_seconds: float) -> str:
    """The metadata property that holds a resource's timeouts."""
    nanoseconds = {"create": create_seconds, "delete": DEFAULT_TIMEOUT_SECONDS, "update": DEFAULT_TIMEOUT_SECONDS}
    return json.dumps(
        {TIMEOUTS_KEY: {name: int(value * 1e9) for name, value in nanoseconds.items()}}, separators=(",", ":")
    )


def _conceal(path: str, value: PropertyValue, sensitive: tuple[str, ...]) -> PropertyValue:
    if path in sensitive:
        return value.with_secret(True)
    if isinstance(value.value, Mapping):
        members = value.value.items()
        return value.with_value({key: _conceal(f"{path}.{key}", item, sensitive) for key, item in members})
    return value


def _own_name(request: api.CheckRequest) -> str:
    """The name it had, else its logical name and seven hexadecimal digits."""
    old = plain_map(request.old_inputs)
    if old.get("name") and "name" in (old.get("__defaults") or []):
        return old["name"]
    seed = request.random_seed or secrets.token_bytes(32)
    return f"{request.name}-{hashlib.sha256(seed).hexdigest()[:7]}"


def _normal(value: Json) -> Json:
    """Empty values are absent ones, also within."""
    if isinstance(value, dict):
        entries: dict[str, Any] = value
        kept = {key: _normal(item) for key, item in entries.items() if not key.startswith("__")}
        return {key: item for key, item in kept.items() if item is not None} or None
    if isinstance(value, list):
        items: list[Any] = value
        return [_normal(item) for item in items] or None
    return None if value in EMPTY else value


def _places(name: str, old: Json, new: Json, *, was: Json, wanted: Json) -> Iterator[tuple[str, PropertyDiffKind]]:
    """Where normalised values differ. Lists and objects that come or go do so item by item; false to true is a change
    of a value that was there."""
    empty: Json = next((type(value)() for value in (old, new) if isinstance(value, (list, dict))), None)
    before = {name: empty if old is None else old}
    after = {name: empty if new is None else new}
    for path, kind in map_differences(wrap_map(before), wrap_map(after)):
        there = was not in (None, "") and wanted not in (None, "")
        yield path, PropertyDiffKind.UPDATE if path == name and there else kind
