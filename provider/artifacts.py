"""Artifacts: files that machines fetch while they boot, in a directory whose name cannot be guessed or listed.

The directory's name is an HMAC of the secret seed and the resource's URN: a run after a killed one finds and overwrites
the same directory.

Life cycle:

- create uploads everything;
- update uploads new and changed files, and deletes those that are no longer inputs, unless the resource `keeps` them;
- read compares hashes with the uploaded files, so that the next up repairs them. Files of an `ephemeral` resource may
  be absent, because a `Removal` deletes them;
- delete removes files and directory; missing ones are no error.

Killed while uploading: each file is complete or missing; the next create overwrites them. Nobody learns a URL before
the state is written. If a resource `keeps` files, their names contain a hash of their content. A file that a killed
update uploaded, and that no later update names, is then unknown to the state, and remains after delete: delete does not
list the directory, because a replacement of this resource uses the same one. Killed while deleting: the next delete
continues.

For files that are nearly the same, the state contains one, and the differences of the others; only hashes of whole
texts are compared, so this makes no difference to diffs. States of earlier versions have a URL for each file instead of
one for the directory; the next update adds that, and uploads nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from metal_ipi.provider.alike import rebuilt
from metal_ipi.provider.artifact_stores import open_store, persistently
from metal_ipi.provider.artifact_stores.names import sha512, unguessable
from metal_ipi.provider.errors import InitFailed, ProviderError
from metal_ipi.provider.resource import Changes, Context, Kind, Made, ResourceType, Values
from metal_ipi.provider.resources.artifacts import ArtifactsArgs
from metal_ipi.provider.values import UNKNOWN, Secret, Unknown

_PLACE = frozenset({"directory", "url", "bootUrl"})
_TEXTS = frozenset({"files", "like", "derived"})


class Artifacts(ResourceType):
    """Files in a directory with an unguessable name on the artifact host."""

    token = "metal-ipi:index:Artifacts"  # noqa: S105 - a type token
    inputs = ArtifactsArgs
    # The texts are in the state's inputs already; diffs compare hashes.
    hidden_inputs = _TEXTS
    found_by_inputs = True

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        changes: dict[str, Kind] = {}
        if old.get("pathSeed") != new.get("pathSeed"):
            changes["pathSeed"] = "update"
        flags = (name for name in ("ephemeral", "keeps") if bool(old.get(name)) != bool(new.get(name)))
        changes.update(dict.fromkeys(flags, "update"))
        there: Mapping[str, str] = old.get("hashes") or {}
        changes.update(_file_changes(there, _files(new), keeps=bool(new.get("keeps"))))
        # The seed determines the directory; another artifact host changes the URLs.
        if not changes and any(old.get(key) != url for key, url in _urls(context, old["directory"]).items()):
            changes["files"] = "update"
        return Changes(changes=changes, replaces=frozenset({"pathSeed"}) & changes.keys())

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        files, seed = _files(new), new.get("pathSeed")
        directory = unguessable(seed, context.urn) if isinstance(seed, str) else UNKNOWN
        if not isinstance(files, Mapping):
            return _marked({"directory": directory, "hashes": UNKNOWN, **_urls(context, directory)})
        return _marked(_outputs(context, directory, files))

    async def create(self, context: Context, inputs: Values) -> Made:
        directory = unguessable(inputs["pathSeed"], context.urn)
        files = _whole(inputs)
        await _put(context, directory, files)
        return Made(
            id=hashlib.sha256(directory.encode()).hexdigest()[:16],
            outputs=_marked(_outputs(context, directory, files)),
        )

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        directory, files = old["directory"], _whole(new)
        there: Mapping[str, str] = old.get("hashes") or {}
        outputs = _outputs(context, directory, files)
        if new.get("keeps"):
            outputs["hashes"] = {**there, **outputs["hashes"]}
        moved = outputs["url"] != _url(old)
        changed = {name: text for name, text in files.items() if moved or there.get(name) != outputs["hashes"][name]}
        await _put(context, directory, changed)
        gone = sorted(there.keys() - outputs["hashes"].keys())
        try:
            if gone:
                await open_store(context.settings.need_artifacts()).delete(directory, gone)
        except ProviderError as error:
            hashes = {**outputs["hashes"], **{name: there[name] for name in gone}}
            raise InitFailed(str(error), resource_id, _marked({**outputs, "hashes": hashes})) from error
        return _marked(outputs)

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        if old.get("ephemeral"):
            return {}
        names = sorted(old["hashes"])
        hashes = await open_store(context.settings.need_artifacts()).hashes(old["directory"], names)
        return {} if hashes == old["hashes"] else {"hashes": hashes}

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        hashes: Mapping[str, str] = old.get("hashes") or {}
        # When the engine cleans up after a killed run, it knows only the inputs.
        names = sorted({*hashes} | {*(old.get("files") or {})} | {*(old.get("derived") or {})})
        directory = old.get("directory") or unguessable(old["pathSeed"], context.urn)
        await open_store(context.settings.need_artifacts()).delete(directory, names)


async def _put(context: Context, directory: str, files: Mapping[str, str]) -> None:
    if files:
        store = open_store(context.settings.need_artifacts())
        contents = {name: text.encode() for name, text in files.items()}
        await persistently(lambda: store.put(directory, contents), context.status.live)


def _files(values: Values) -> Mapping[str, Any] | Unknown:
    """The texts of all files, by name; unknown as a whole or one by one."""
    files, derived, like = values.get("files"), values.get("derived") or {}, values.get("like")
    if not isinstance(files, Mapping) or not isinstance(derived, Mapping) or isinstance(like, Unknown):
        return UNKNOWN
    base = files.get(like)
    told = derived.items()
    known = {name: rebuilt(base, text) for name, text in told if isinstance(base, str) and isinstance(text, str)}
    return {**dict.fromkeys(derived, UNKNOWN), **files, **known}


def _whole(values: Values) -> Mapping[str, str]:
    files = _files(values)
    assert isinstance(files, Mapping), "the plug-in refuses what is not known"
    return files


def _outputs(context: Context, directory: str | Unknown, files: Mapping[str, Any]) -> dict[str, Any]:
    hashes = {name: sha512(text.encode()) if isinstance(text, str) else UNKNOWN for name, text in files.items()}
    return {"directory": directory, "hashes": hashes, **_urls(context, directory)}


def _marked(outputs: dict[str, Any]) -> dict[str, Any]:
    """The outputs for the state. Whoever knows the directory can fetch its files, so its name and URLs are secret."""
    return {key: Secret(value) if key in _PLACE else value for key, value in outputs.items()}


def _urls(context: Context, directory: str | Unknown) -> dict[str, Any]:
    """Both URLs of the directory; unknown if the directory or the artifact host is."""
    settings = context.settings.artifacts
    if settings is None or isinstance(directory, Unknown):
        return {"url": UNKNOWN, "bootUrl": UNKNOWN}
    return {"url": f"{settings.base_url}/{directory}", "bootUrl": f"{settings.boot_base_url}/{directory}"}


def _url(old: Values) -> str | None:
    """The URL of the directory. States of earlier versions have one for each file."""
    of_files: Mapping[str, str] = old.get("urls") or {}
    return old.get("url") or next((url.rpartition("/")[0] for url in of_files.values()), None)


def _file_changes(hashes: Mapping[str, str], files: Any, *, keeps: bool) -> dict[str, Kind]:
    if not isinstance(files, Mapping):
        return {"files": "update"}
    changes: dict[str, Kind] = {}
    for name, text in files.items():
        path = f'files["{name}"]'
        if name not in hashes:
            changes[path] = "add"
        elif not isinstance(text, str) or sha512(text.encode()) != hashes[name]:
            changes[path] = "update"
    gone = () if keeps else hashes.keys() - files.keys()
    return {**changes, **{f'files["{name}"]': "delete" for name in sorted(gone)}}
