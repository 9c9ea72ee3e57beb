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

from lab.plugins.base import EngineLog, InitFailed, PluginError, Properties, Resource
from lab.plugins.differences import diff_response, map_differences, top
from lab.plugins.equinix_metal.client import Client, Gone
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
    sets: ClassVar[tuple[str, ...]] = ()
    """Lists whose order means nothing."""
    spelt: ClassVar[tuple[str, ...]] = ("metro",)
    """Inputs that Terraform keeps in a spelling of its own: a refresh leaves them as they were given."""
    sensitive: ClassVar[tuple[str, ...]] = ()
    """Properties that are always secret, members of objects as `object.member`."""

    path: ClassVar[str] = ""
    """Where the API has those of its kind, each under its id."""
    include: ClassVar[str] = ""
    """What the API is asked to show of others with it."""

    def __init__(self, fields: Mapping[str, Field], client: Client, log: EngineLog) -> None:
        self.fields = fields
        self._client = client
        self._log = log

    def rules(self, inputs: Mapping[str, Json]) -> Iterator[CheckFailure]:
        """What holds between inputs."""
        yield from ()

    def same(self, name: str, state: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
        """Whether an input that looks different is not: the API writes metros in small letters."""
        return name == "metro" and str(state.get(name) or "").lower() == str(inputs.get(name) or "").lower()

    def replaces(self, name: str, inputs: Mapping[str, Json]) -> bool:
        """Whether a change of this input takes a new resource."""
        return self.fields[name].replace

    @abstractmethod
    async def make(self, inputs: Mapping[str, Json], request: api.CreateRequest) -> dict[str, Json]:
        """Make it; its properties, among them its `id`."""

    @abstractmethod
    def describe(self, document: Mapping[str, Json], known: Mapping[str, Json]) -> dict[str, Json]:
        """Its properties, from the API's document; `known` is what the API does not tell."""

    async def fetch(self, identifier: str, known: Mapping[str, Json]) -> dict[str, Json] | None:
        """The resource's properties now, None when it is gone."""
        query = {"include": self.include} if self.include else {}
        try:
            return self.describe((await self._client.get(f"{self.path}/{identifier}", **query)).document, known)
        except Gone:
            return None

    async def change(self, request: api.UpdateRequest, olds: Mapping[str, Json], inputs: Mapping[str, Json]) -> None:
        """Change in place what differs. Nothing, where every change takes a new resource: then an update only looks
        again at one that was not complete."""

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Defaults, and a name of its own for what has none."""
        inputs = with_defaults(self.fields, request.new_inputs, note=True)
        if "name" in self.fields and "name" not in request.new_inputs:
            inputs["name"] = wrap(_own_name(request))
            inputs["__defaults"] = wrap(sorted([*plain_map(inputs)["__defaults"], "name"]))
        failures = list(problems(self.fields, request.new_inputs)) or list(self.rules(plain_map(inputs)))
        return api.CheckResponse(inputs, failures)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """Inputs against the state: what is empty is absent, what the API filled in may stay."""
        state = plain_map(request.old_state)
        news = {name: value for name, value in request.new_inputs.items() if name not in request.ignore_changes}
        inputs = plain_map(news)
        found: dict[str, PropertyDiffKind] = {}
        for name in self.fields:
            if name in request.ignore_changes or (name in self.optional and not inputs.get(name)):
                continue
            old, new = _normal(state.get(name)), _normal(inputs.get(name))
            if name in news and contains_unknown(news[name]):
                found[name] = PropertyDiffKind.UPDATE if old is not None else PropertyDiffKind.ADD
            elif name in self.sets:
                found.update(_members(name, old or [], new or []))
            elif old != new and not self.same(name, state, inputs):
                found.update(_places(name, old, new, was=state.get(name), wanted=inputs.get(name)))
        replaces = {path for path in found if self.replaces(top(path), inputs)}
        response = diff_response(found, replaces)
        # Two of the same name may not be there at once; a name that was made up differs each time.
        named = "name" in self.fields and "name" not in (inputs.get("__defaults") or [])
        response.delete_before_replace = bool(replaces) and named
        return response

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """In a preview what can be known, and no request; otherwise `make`."""
        if request.preview:
            return api.CreateResponse("", self.preview(request.properties))
        state = await self.make(_complete(self.fields, plain_map(request.properties)), request)
        return api.CreateResponse(state["id"], self.concealed(wrap_map(state)))

    def kept(self, state: Mapping[str, Json], reason: str) -> InitFailed:
        """It was made, but something is amiss: the engine keeps it and the next update looks at it again."""
        return InitFailed(state["id"], self.concealed(wrap_map(state)), reason)

    def preview(self, inputs: Properties) -> Properties:
        """What is known of a resource before it is made."""
        own = {name: value for name, value in inputs.items() if name in self.fields}
        return {**{name: unknown() for name in self.computed}, **self.concealed(own)}

    def concealed(self, properties: Properties) -> Properties:
        """The properties with the always secret ones marked."""
        return {name: _conceal(name, value, self.sensitive) for name, value in properties.items()}

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """`change`, and what it looks like then; in a preview what can be known."""
        olds = plain_map(request.olds)
        inputs = {**plain_map(request.news), **{name: olds[name] for name in request.ignore_changes if name in olds}}
        if request.preview:
            own = {name: value for name, value in inputs.items() if name in self.fields}
            changed = {name: value for name, value in own.items() if not self.same(name, olds, inputs)}
            return api.UpdateResponse(self.concealed(wrap_map({**olds, **changed})))
        inputs = _complete(self.fields, inputs)
        await self.change(request, olds, inputs)
        told = {name: value for name, value in olds.items() if name not in self.fields}
        state = await self.fetch(request.resource_id, {**told, **inputs})
        if state is None:
            raise PluginError(f"{request.urn.rsplit('::', 1)[-1]} ({request.resource_id}) no longer exists: refresh")
        return api.UpdateResponse(self.concealed(wrap_map({**self._nothing(), **state})))

    async def delete(self, request: api.DeleteRequest) -> None:
        """Remove it. The API refuses while something else needs it."""
        await self._client.delete(f"{self.path}/{request.resource_id}")

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """Inputs follow what was found, so that a drift shows at the next update; imports get what can be set."""
        known = plain_map(request.properties)
        state = await self.fetch(request.resource_id, known)
        if state is None:
            return api.ReadResponse("", {}, {})
        inputs = plain_map(request.inputs)
        names = [name for name in inputs if name in self.fields] if inputs else list(self.fields)
        for name in names:
            if name not in inputs and name in state:
                known_to_be, value = self.fields[name], _normal(state[name])
                if known_to_be.required or value not in (None, known_to_be.default):
                    inputs[name] = state[name]
            elif name in inputs and not (name in self.spelt and self.same(name, state, inputs)):
                inputs[name] = _drifted(inputs[name], state.get(name))
        inputs.setdefault("__defaults", [])
        given = {name: value for name, value in inputs.items() if value is not None}
        outputs = self.concealed(wrap_map({**self._nothing(), **state}))
        return api.ReadResponse(request.resource_id, outputs, self.concealed(wrap_map(given)))

    def _nothing(self) -> dict[str, Json]:
        """Lists and objects that are not there: the Terraform bridge shows them once it has looked again."""
        kinds: dict[str, Json] = {"list": [], "object": None}
        return {name: kinds[known.kind] for name, known in self.fields.items() if known.kind in kinds}


def timeouts_meta(create_seconds: float, *, changes: bool = True) -> str:
    """The metadata property that holds a resource's timeouts; `changes`: whether it can be updated."""
    nanoseconds = {"create": create_seconds, "delete": DEFAULT_TIMEOUT_SECONDS}
    if changes:
        nanoseconds["update"] = DEFAULT_TIMEOUT_SECONDS
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


def _complete(fields: Mapping[str, Field], values: Mapping[str, Json]) -> dict[str, Json]:
    """Inputs as Terraform keeps them: an object that is given has all of its members, if only empty ones."""
    done = dict(values)
    for name, known in fields.items():
        value = values.get(name)
        if known.kind == "object" and isinstance(value, Mapping):
            done[name] = _whole(known.fields, value)
        elif known.kind == "list" and known.element and known.element.fields and isinstance(value, list):
            done[name] = [_whole(known.element.fields, entry) for entry in value]
    return done


def _whole(fields: Mapping[str, Field], members: Mapping[str, Json]) -> dict[str, Json]:
    empty: dict[str, Json] = {"boolean": False, "integer": 0, "number": 0, "list": []}
    return {name: members.get(name, empty.get(known.kind, "")) for name, known in fields.items()}


def _drifted(given: Json, found: Json) -> Json:
    """An input as it was given, or what was found where that is another value."""
    if isinstance(given, dict) and isinstance(found, dict):
        members: dict[str, Json] = given
        there: dict[str, Json] = found
        return {name: _drifted(value, there.get(name, value)) for name, value in members.items()}
    return given if _normal(given) == _normal(found) else found


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


def _members(name: str, old: list[Json], new: list[Json]) -> Iterator[tuple[str, PropertyDiffKind]]:
    """Which members of a set go and come, each where it stands."""
    gone = {f"{name}[{index}]" for index, member in enumerate(old) if member not in new}
    come = {f"{name}[{index}]" for index, member in enumerate(new) if member not in old}
    for path in sorted(gone | come):
        kind = PropertyDiffKind.ADD if path in come else PropertyDiffKind.DELETE
        yield path, PropertyDiffKind.UPDATE if path in gone & come else kind


def _places(name: str, old: Json, new: Json, *, was: Json, wanted: Json) -> Iterator[tuple[str, PropertyDiffKind]]:
    """Where normalised values differ. Lists and objects that come or go do so item by item; false to true is a change
    of a value that was there."""
    empty: Json = next((type(value)() for value in (old, new) if isinstance(value, (list, dict))), None)
    before = {name: empty if old is None else old}
    after = {name: empty if new is None else new}
    for path, kind in map_differences(wrap_map(before), wrap_map(after)):
        there = was is not None and wanted not in (None, "")
        yield path, PropertyDiffKind.UPDATE if path == name and there else kind
