"""Between the engine's inputs and state and the API server's objects. Pure functions."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pulumi.provider.experimental.property_value import PropertyValue

from lab.plugins.base import Properties
from lab.plugins.values import UNKNOWN, Json, contains_unknown, plain, plain_map, wrap_map

Object = dict[str, Json]

INPUTS, MANAGER, VERSION = "__inputs", "__fieldManager", "__initialApiVersion"
"""What the state holds beside the object, under the official plug-in's names."""

_SERVER_SIDE = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SHORTEST_SECRET = 3


def without_string_data(inputs: Properties) -> Properties:
    """A Secret's inputs with `stringData` as `data`, where the API server puts it; all of it secret."""
    texts = inputs.get("stringData")
    result = {name: value for name, value in inputs.items() if name != "stringData"}
    if texts is not None and isinstance(texts.value, Mapping):
        given = result.get("data")
        data = dict(given.value) if given is not None and isinstance(given.value, Mapping) else {}
        data.update({key: _encoded(value) for key, value in texts.value.items()})
        result["data"] = PropertyValue(data)
    elif texts is not None and texts.value is not None:
        result["data"] = texts  # not known yet
    if "data" in result:
        result["data"] = result["data"].with_secret(True)
    return result


def _encoded(value: PropertyValue) -> PropertyValue:
    text = value.value
    if not isinstance(text, str) or text == UNKNOWN:
        return value
    return value.with_value(base64.b64encode(text.encode()).decode())


def manifest(inputs: Mapping[str, PropertyValue]) -> Object:
    """What is applied: plain data, whole numbers as such, nothing that is null."""
    own = {name: plain(value) for name, value in inputs.items() if not name.startswith("__") and name != "version"}
    return cast("Object", _tidy(own))


def _tidy(value: Json) -> Json:
    if isinstance(value, dict):
        items = cast("dict[str, Json]", value)
        return {key: _tidy(item) for key, item in items.items() if item is not None}
    if isinstance(value, list):
        return [_tidy(item) for item in cast("list[Json]", value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def field_manager(urn: str, state: Mapping[str, Json]) -> str:
    """Who owns the fields that are applied: as before, or by a name that is the resource's alone."""
    return str(state.get(MANAGER) or f"pulumi-kubernetes-{hashlib.sha256(urn.encode()).hexdigest()[:8]}")


def annotations_of(document: Mapping[str, Json]) -> dict[str, Json]:
    """An object's annotations."""
    metadata = document.get("metadata")
    found = cast("Mapping[str, Json]", metadata).get("annotations") if isinstance(metadata, Mapping) else None
    return dict(cast("Mapping[str, Json]", found)) if isinstance(found, Mapping) else {}


def identifier(document: Mapping[str, Json]) -> str:
    """`namespace/name`, or `name` of what is in no namespace."""
    metadata = document["metadata"]
    return "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)


def title(document: Mapping[str, Json]) -> str:
    """How messages call it."""
    return f"{document['kind']} {identifier(document)}"


def owned_by(document: Mapping[str, Json], manager: str) -> Json:
    """The fields that a manager has applied and still owns; None where it has applied nothing."""
    entries: Sequence[Object] = document["metadata"].get("managedFields") or []
    found = [each["fieldsV1"] for each in entries if each["manager"] == manager and each["operation"] == "Apply"]
    return found[0] if found else None


def substance(document: Mapping[str, Json]) -> Object:
    """The object without what the API server keeps books of, and without its status: somebody else's."""
    metadata = {key: value for key, value in document["metadata"].items() if key not in _SERVER_SIDE}
    return {**{key: value for key, value in document.items() if key != "status"}, "metadata": metadata}


def pruned(live: Json, like: Json) -> Json:
    """The part of `live` that `like` says something about: inputs follow what was changed, and nothing else."""
    if isinstance(live, dict) and isinstance(like, dict):
        fields, wanted = cast("Object", live), cast("Object", like)
        return {key: pruned(fields[key], item) for key, item in wanted.items() if key in fields}
    if isinstance(live, list) and isinstance(like, list):
        entries, known = cast("list[Json]", live), cast("list[Json]", like)
        if len(entries) == len(known):
            return [pruned(entry, item) for entry, item in zip(entries, known, strict=True)]
    return live


def checkpoint(live: Object, inputs: Properties, manager: str) -> Properties:
    """The state: the object as it is, the inputs it was made from, and who owns them; secrets marked in both."""
    state = concealed(wrap_map(live), inputs)
    known = {name: value for name, value in inputs.items() if not name.startswith("__") and name != "version"}
    return {
        **state,
        INPUTS: PropertyValue(concealed(known, known, kind=live.get("kind"))),
        MANAGER: PropertyValue(manager),
        VERSION: PropertyValue(live["apiVersion"]),
    }


def concealed(values: Properties, inputs: Mapping[str, PropertyValue], kind: str | None = None) -> Properties:
    """The values with those marked that are secret in the inputs, and all data of a Secret."""
    result = {name: _conceal(value, inputs.get(name)) for name, value in values.items()}
    if (kind or plain_map(values).get("kind")) != "Secret":
        return result
    for name in ("data", "stringData"):
        if name in result:
            result[name] = result[name].with_secret(True)
    metadata = result.get("metadata")
    if metadata is not None and _LAST_APPLIED in annotations_of(plain_map(result)):
        result["metadata"] = metadata.with_secret(True)
    return result


def _conceal(value: PropertyValue, given: PropertyValue | None) -> PropertyValue:
    if given is None:
        return value
    if given.is_secret:
        return value.with_secret(True)
    inner, model = value.value, given.value
    if isinstance(inner, Mapping) and isinstance(model, Mapping):
        return value.with_value({key: _conceal(item, model.get(key)) for key, item in inner.items()})
    if isinstance(inner, Sequence) and not isinstance(inner, str) and given.contains_secret():
        return value.with_secret(True)  # entries may have changed places
    return value


def known_inputs(state: Mapping[str, PropertyValue]) -> Properties:
    """The inputs that the state was made from."""
    found = state.get(INPUTS)
    return dict(found.value) if found is not None and isinstance(found.value, Mapping) else {}


def is_known(inputs: Mapping[str, PropertyValue]) -> bool:
    """Whether there is nothing in it that only the update will tell."""
    return not any(contains_unknown(value) for value in inputs.values())


def secret_texts(inputs: Mapping[str, PropertyValue]) -> list[str]:
    """Every text that must not be told, the longest first; a Secret's data also as it was before it was encoded."""
    found = {text for value in inputs.values() for text in _texts(value, secret=False)}
    return sorted({text for text in found if len(text) >= _SHORTEST_SECRET}, key=len, reverse=True)


def _texts(value: PropertyValue, *, secret: bool) -> Iterator[str]:
    inner, hidden = value.value, secret or value.is_secret
    if isinstance(inner, str):
        if hidden and inner != UNKNOWN:
            yield inner
            try:
                yield base64.b64decode(inner, validate=True).decode()
            except ValueError:  # it was not encoded
                return
    elif isinstance(inner, Mapping):
        for item in inner.values():
            yield from _texts(item, secret=hidden)
    elif isinstance(inner, Sequence):
        for item in inner:
            yield from _texts(item, secret=hidden)


def scrubbed(message: str, texts: Sequence[str]) -> str:
    """A message of somebody else's, without the secrets that it may quote."""
    for text in texts:
        message = message.replace(text, "[secret]")
    return message
