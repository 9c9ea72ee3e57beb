"""The behaviour that the Terraform bridge adds to all resources: names, defaults, comparisons, previews."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import PropertyDiffKind

from lab.plugins.base import EngineLog, InitFailed, PluginError, Properties, Resource
from lab.plugins.equinix_metal.client import Client, Gone, made_since
from lab.plugins.equinix_metal.documents import Document
from lab.plugins.equinix_metal.table import Property, Type
from lab.plugins.fields import Field, problems, with_defaults
from lab.plugins.values import (
    Json,
    contains_unknown,
    diff_response,
    differences,
    plain_map,
    top,
    unknown,
    wrap,
    wrap_map,
)

_TIMEOUTS_KEY = "e2bfb730-ecaa-11e6-8f88-34363bc7c4c0"
"""Under this name Terraform keeps timeouts in a resource's metadata."""

DEFAULT_TIMEOUT_SECONDS = 1200.0
_LEAVING = ("deprovisioning", "deleting", "deleted", "failed")
"""States of what is no longer of use."""
_EMPTY: Mapping[str, Json] = {"boolean": False, "integer": 0, "number": 0, "list": [], "object": None}


class Bridged(Resource):
    """One resource type, as its table says; subclasses do what is special."""

    def __init__(self, kind: Type, client: Client, log: EngineLog) -> None:
        self.kind = kind
        self._client = client
        self._log = log

    # --- talking to the API ------------------------------------------------------------------------------------------

    async def make(self, inputs: Document, request: api.CreateRequest) -> dict[str, Json]:
        """Order it; its properties, among them its `id`."""
        path = self.kind.orders.format_map(inputs)
        include = {"include": self.kind.include} if self.kind.include else {}

        async def find(since: datetime) -> dict[str, Json] | None:
            return await self.find(path, inputs, since)

        document = await self._client.order(path, _body(self.kind.own, inputs), find, **include)
        return self.describe(document, self.with_timeouts(inputs, request.timeout))

    async def find(self, path: str, inputs: Document, since: datetime) -> dict[str, Json] | None:
        """The one that is like the order and was made since: the order's outcome is not known."""
        kind = self.kind
        if kind.marks and not any(inputs.get(name) for name in kind.marks):
            raise PluginError(
                f"Metal API: POST {path}: nobody knows whether it was done, and {kind.title} without "
                f"{' and '.join(kind.marks)} cannot be looked for: look in the project before you try again"
            )
        include = {"include": kind.include} if kind.include else {}
        async for entry in self._client.entries(path, kind.collection, **include):
            there = self.describe(entry.document, {})
            alike = all(self._alike(name, there, inputs) for name in kind.alike)
            if alike and entry.document.get("state") not in _LEAVING and made_since(entry, since):
                return entry.document
        return None

    async def fetch(self, identifier: str, known: Document) -> dict[str, Json] | None:
        """The resource's properties now, None when it is gone."""
        query = {"include": self.kind.include} if self.kind.include else {}
        try:
            document = (await self._client.get(f"{self.kind.path}/{identifier}", **query)).document
        except Gone:
            return None
        return self.describe(document, self.with_timeouts(known))

    async def change(self, request: api.UpdateRequest, olds: Document, inputs: Document) -> None:
        """Set what differs; what is no longer given to nothing, what the API fills in excepted."""
        own = {name: it for name, it in self.kind.own.items() if it.sent and not it.replace}
        changed = {
            name: it
            for name, it in own.items()
            if _normal(olds.get(name)) != _normal(inputs.get(name)) and (inputs.get(name) or not it.filled)
        }
        body = {it.sent: inputs.get(name) or _EMPTY.get(it.kind, "") for name, it in changed.items()}
        if body:
            await self._client.change(self.kind.method, f"{self.kind.path}/{request.resource_id}", body)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Remove it. The API refuses while something else needs it."""
        await self._client.delete(f"{self.kind.path}/{request.resource_id}")

    # --- between the API's documents and properties ------------------------------------------------------------------

    def describe(self, document: Document, known: Document) -> dict[str, Json]:
        """Its properties; `known` is what the API does not tell."""
        state: dict[str, Json] = {"id": document["id"], "__meta": known.get("__meta")}
        for name, it in self.kind.own.items():
            state[name] = read(it, document, known.get(name)) if it.read else known.get(name, it.default)
        return {name: value for name, value in state.items() if value is not None}

    def with_timeouts(self, known: Document, create_seconds: float = 0) -> dict[str, Json]:
        """With the metadata that holds a resource's timeouts."""
        if not self.kind.timeouts or known.get("__meta"):
            return dict(known)
        seconds = {**dict.fromkeys(self.kind.timeouts, DEFAULT_TIMEOUT_SECONDS)}
        seconds["create"] = create_seconds or DEFAULT_TIMEOUT_SECONDS
        nanoseconds = {name: int(value * 1e9) for name, value in seconds.items()}
        return {**known, "__meta": json.dumps({_TIMEOUTS_KEY: nanoseconds}, separators=(",", ":"))}

    def _same(self, name: str, state: Document, inputs: Document) -> bool:
        """Whether an input that looks different is not."""
        same = self.kind.own[name].same if name in self.kind.own else None
        return same is not None and same(state, inputs)

    def _alike(self, name: str, state: Document, inputs: Document) -> bool:
        if not inputs.get(name) and (self.kind.own[name].filled or self.kind.own[name].optional):
            return True
        old, new = _normal(state.get(name)), _normal(inputs.get(name))
        return old == new or self._same(name, state, inputs) or (isinstance(old, list) and _sorted(old) == _sorted(new))

    # --- what the engine asks ----------------------------------------------------------------------------------------

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Defaults, and a name of its own for what has none."""
        inputs = with_defaults(self.kind.inputs, request.new_inputs)
        if "name" in self.kind.inputs and "name" not in request.new_inputs:
            inputs["name"] = wrap(_own_name(request))
            inputs["__defaults"] = wrap(sorted([*plain_map(inputs)["__defaults"], "name"]))
        return api.CheckResponse(inputs, list(problems("equinix-metal", self.kind.inputs, request.new_inputs)))

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """Inputs against the state: what is empty is absent, what the API filled in may stay."""
        state = plain_map(request.old_state)
        news = {name: value for name, value in request.new_inputs.items() if name not in request.ignore_changes}
        inputs = plain_map(news)
        found: dict[str, PropertyDiffKind] = {}
        for name, it in self.kind.own.items():
            absent = it.output or it.absent or ((it.filled or it.optional) and not inputs.get(name))
            if absent or name in request.ignore_changes:
                continue
            old, new = _normal(state.get(name)), _normal(inputs.get(name))
            if name in news and contains_unknown(news[name]):
                found[name] = PropertyDiffKind.UPDATE if old is not None else PropertyDiffKind.ADD
            elif not it.ordered:
                found.update(_members(name, old or [], new or []))
            elif old != new and not self._same(name, state, inputs):
                found.update(_places(name, old, new, was=state.get(name), wanted=inputs.get(name)))
        replaces = {path for path in found if self.kind.own[top(path)].replace}
        response = diff_response(found, replaces)
        # Two of the same name may not be there at once; a name that was made up differs each time.
        named = "name" in self.kind.inputs and "name" not in (inputs.get("__defaults") or [])
        response.delete_before_replace = bool(replaces) and named
        return response

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """In a preview what can be known, and no request; otherwise `make`."""
        if request.preview:
            new = {name: unknown() for name, it in self.kind.own.items() if it.output or it.filled}
            own = {name: value for name, value in request.properties.items() if name in self.kind.inputs}
            return api.CreateResponse("", {**new, **self._concealed(own)})
        state = await self.make(_complete(self.kind.own, plain_map(request.properties)), request)
        return api.CreateResponse(state["id"], self._concealed(wrap_map(state)))

    def kept(self, state: Document, reason: str) -> InitFailed:
        """It was made, but something is amiss: the engine keeps it and the next update looks at it again."""
        return InitFailed(state["id"], self._concealed(wrap_map(state)), reason)

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """`change`, and what it looks like then; in a preview what can be known."""
        olds = plain_map(request.olds)
        inputs = {**plain_map(request.news), **{name: olds[name] for name in request.ignore_changes if name in olds}}
        if request.preview:
            own = {name: value for name, value in inputs.items() if name in self.kind.inputs}
            changed = {name: value for name, value in own.items() if not self._same(name, olds, inputs)}
            return api.UpdateResponse(self._concealed(wrap_map({**olds, **changed})))
        inputs = _complete(self.kind.own, inputs)
        await self.change(request, olds, inputs)
        told = {name: value for name, value in olds.items() if name not in self.kind.inputs}
        state = await self.fetch(request.resource_id, {**told, **inputs})
        if state is None:
            raise PluginError(f"{request.urn.rsplit('::', 1)[-1]} ({request.resource_id}) no longer exists: refresh")
        return api.UpdateResponse(self._concealed(wrap_map({**self._nothing(), **state})))

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """Inputs follow what was found, so that a drift shows at the next update; imports get what can be set."""
        state = await self.fetch(request.resource_id, plain_map(request.properties))
        if state is None:
            return api.ReadResponse("", {}, {})
        inputs = plain_map(request.inputs)
        can_be_set = {name: it for name, it in self.kind.own.items() if not (it.output or it.absent)}
        for name in [name for name in inputs if name in can_be_set] if inputs else list(can_be_set):
            it = can_be_set[name]
            if name in inputs and not (it.spelt and self._same(name, state, inputs)):
                inputs[name] = _drifted(inputs[name], state.get(name))
            elif (
                name in state and name not in inputs and (it.required or _normal(state[name]) not in (None, it.default))
            ):
                inputs[name] = state[name]
        inputs.setdefault("__defaults", [])
        given = {name: value for name, value in inputs.items() if value is not None}
        outputs = self._concealed(wrap_map({**self._nothing(), **state}))
        return api.ReadResponse(request.resource_id, outputs, self._concealed(wrap_map(given)))

    def _nothing(self) -> dict[str, Json]:
        """Lists and objects that are not there: the Terraform bridge shows them once it has looked again."""
        return {name: _EMPTY[it.kind] for name, it in self.kind.own.items() if it.kind in ("list", "object")}

    def _concealed(self, properties: Properties) -> Properties:
        """The properties with the always secret ones marked."""
        return {name: _conceal(name, value, self.kind.sensitive) for name, value in properties.items()}


def read(it: Property, document: Document, known: Json = None) -> Json:
    """A property's value in a document."""
    if isinstance(it.read, str):
        value: Json = document
        for name in it.read.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
    else:
        value = it.read(document)
    if value in (None, "") and it.sparse:
        return known
    if it.element and it.element.fields:
        return [read_all(it.element.fields, entry) for entry in value or []]
    return _EMPTY.get(it.kind, "") if value is None else value


def read_all(fields: Mapping[str, Field], document: Document) -> dict[str, Json]:
    """What a document tells of an object's members."""
    rows = {name: it for name, it in fields.items() if isinstance(it, Property) and it.read}
    return {name: read(it, document) for name, it in rows.items()}


def _body(own: Mapping[str, Property], inputs: Document) -> dict[str, Json]:
    """The request for a new one; empty values are left out, as the official plug-in does."""
    return {it.sent: _encoded(it, inputs[name]) for name, it in own.items() if it.sent and inputs.get(name)}


def _encoded(it: Property, value: Json) -> Json:
    if it.encode:
        return it.encode(value)
    if it.kind == "object":
        return _body({name: each for name, each in it.fields.items() if isinstance(each, Property)}, value)
    return int(value) if it.kind == "integer" else value


def _conceal(path: str, value: PropertyValue, sensitive: tuple[str, ...] | Any) -> PropertyValue:
    if path in sensitive:
        return value.with_secret(True)
    if isinstance(value.value, Mapping):
        members = value.value.items()
        return value.with_value({key: _conceal(f"{path}.{key}", item, sensitive) for key, item in members})
    return value


def _complete(own: Mapping[str, Property], values: Document) -> dict[str, Json]:
    """Inputs as Terraform keeps them: an object that is given has all of its members, if only empty ones."""
    done = dict(values)
    for name, it in own.items():
        value = values.get(name)
        if it.kind == "object" and isinstance(value, Mapping):
            done[name] = _whole(it.fields, value)
        elif it.element and it.element.fields and isinstance(value, list):
            done[name] = [_whole(it.element.fields, entry) for entry in value]
    return done


def _whole(fields: Mapping[str, Field], members: Document) -> dict[str, Json]:
    """A member that the stand-in refuses is one of the lists that Terraform keeps empty."""
    return {
        name: members.get(name, [] if known.absent else _EMPTY.get(known.kind, "")) for name, known in fields.items()
    }


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
    return None if value in (None, "", False, 0) else value


def _sorted(members: Json) -> list[str]:
    return sorted(str(member) for member in members or [])


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
    for path, kind in differences(wrap_map(before), wrap_map(after)):
        there = was is not None and wanted not in (None, "")
        yield path, PropertyDiffKind.UPDATE if path == name and there else kind
