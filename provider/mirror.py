"""Mirror: a release's files on the artifact host, for machines that cannot fetch them from their publisher.

The iPXE of network cards supports no HTTPS, and cannot check a hash. So this resource fetches the files, by HTTPS if
the stream has https URLs, and the site serves them. A file gets its final name, which contains its SHA-256, only after
its hash was checked: so a file with that name is complete, and is neither read nor fetched again.

Life cycle: create claims all files and copies missing ones; update does the same, and releases files that are no longer
inputs; read compares names and sizes, so that the next up repairs; delete releases everything. A file is deleted with
its last claim.

Killed at any moment: the next run finds the claim by its name, and each file is complete or missing. Two stacks at
once: a stack that claims a file checks the file afterwards; a stack that deleted a file checks for claims afterwards,
and restores the file if there is one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from metal_ipi.provider import download, web
from metal_ipi.provider.artifact_stores import ArtifactStore, open_store, persistently
from metal_ipi.provider.errors import InitFailed, ProviderError, RemoteError
from metal_ipi.provider.mirror_files import DIRECTORY, MirroredFile, claim_of, is_claim_of
from metal_ipi.provider.resource import Changes, Context, Kind, Made, ResourceType, Values
from metal_ipi.provider.resources.mirror import MirrorArgs
from metal_ipi.provider.values import UNKNOWN, has_unknown

_TIMEOUT = 60.0


class Mirror(ResourceType):
    """Files of a release, copied to the artifact host."""

    token = "metal-ipi:index:Mirror"  # noqa: S105 - a type token
    inputs = MirrorArgs

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        changes: dict[str, Kind] = {}
        if old.get("pathSeed") != new.get("pathSeed"):
            changes["pathSeed"] = "update"
        if has_unknown(new.get("files")) or old.get("files") != new.get("files") or self._drifted(context, old, new):
            changes["files"] = "update"
        return Changes(changes=changes, replaces=frozenset({"pathSeed"}) & changes.keys())

    @staticmethod
    def _drifted(context: Context, old: Values, new: Values) -> bool:
        """Whether files are missing, or have other URLs now."""
        return _urls(context, new) != old.get("urls") or _names(new["files"]) != {*(old.get("sizes") or {})}

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        return {"urls": _urls(context, new), "sizes": UNKNOWN}

    async def create(self, context: Context, inputs: Values) -> Made:
        identity = _claim(inputs, context.urn)
        return Made(id=identity, outputs=await self._fill(context, identity, inputs, {}))

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        before: Mapping[str, Any] = old.get("files") or {}
        sizes: dict[str, int] = dict(old.get("sizes") or {})
        outputs = await self._fill(context, resource_id, new, sizes, lost=_names(before) - sizes.keys())
        for name in sorted(_names(before) - _names(new["files"])):
            await _Place(context, resource_id).give_up(_by_name(before)[name])
        return outputs

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        known: Mapping[str, int] = old.get("sizes") or {}
        store = open_store(context.settings.need_artifacts())
        there = await persistently(lambda: store.sizes(DIRECTORY, sorted(known)), context.status.live)
        kept = {name: size for name, size in known.items() if there.get(name) == size}
        return {} if kept == known else {"sizes": kept}

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        place = _Place(context, resource_id or _claim(old, context.urn))
        for file in _by_name(old.get("files") or {}).values():
            await place.give_up(file)

    async def _fill(
        self,
        context: Context,
        claim: str,
        inputs: Values,
        sizes: Mapping[str, int],
        *,
        lost: frozenset[str] | set[str] = frozenset(),
    ) -> Values:
        """Claim and copy all files. Files in `lost` are copied again, even if a file with that name exists.

        On an error the claims are kept in the state, so that a destroy releases them. Raises InitFailed.
        """
        place, found = _Place(context, claim), dict[str, int]()
        files: Mapping[str, Any] = inputs["files"]
        try:
            for title in sorted(files):
                file = _file(files[title])
                found[file.name] = await place.have(title, file, again=file.name in lost)
                await place.check_served(title, file, found[file.name])
        except ProviderError as error:
            outputs = {"urls": _urls(context, inputs), "sizes": found}
            raise InitFailed(str(error), claim, outputs) from error
        return {"urls": _urls(context, inputs), "sizes": found}


class _Place:
    """The mirror's directory, as used by one `Mirror`."""

    def __init__(self, context: Context, claim: str) -> None:
        self._context, self._claim, self._tell = context, claim, context.status.live
        self._store: ArtifactStore = open_store(context.settings.need_artifacts())

    async def have(self, title: str, file: MirroredFile, *, again: bool) -> int:
        """Claim a file, and copy it if it is missing; returns its size."""
        claimed = {claim_of(file.name, self._claim): b""}
        await persistently(lambda: self._store.put(DIRECTORY, claimed), self._tell)
        size = None if again else await self._size(file.name)
        if size is None:
            await self._copy(title, file)
            size = await self._size(file.name)
        if size is None:
            raise RemoteError(
                f"{title}: {file.name} was copied into the mirror, but is not there: find out who else writes there"
            )
        return size

    async def give_up(self, file: MirroredFile) -> None:
        """Release a file; delete it with its last claim."""
        ours = [claim_of(file.name, self._claim)]
        await persistently(lambda: self._store.delete(DIRECTORY, ours), self._tell)
        if await self._is_claimed(file.name):
            return
        await persistently(lambda: self._store.delete(DIRECTORY, [file.name]), self._tell)
        if await self._is_claimed(file.name) and await self._size(file.name) is None:
            # Another stack claimed it after our check, and may have seen the file before it was deleted.
            await self._copy(file.name, file)

    async def _is_claimed(self, name: str) -> bool:
        names = await persistently(lambda: self._store.names(DIRECTORY), self._tell)
        return any(is_claim_of(name, other) for other in names)

    async def _size(self, name: str) -> int | None:
        found = await persistently(lambda: self._store.sizes(DIRECTORY, [name]), self._tell)
        return found.get(name)

    async def _copy(self, title: str, file: MirroredFile) -> None:
        async with web.client(self._context.settings, timeout=_TIMEOUT) as client:

            async def once() -> None:
                parts = download.checked(client, file.url, file.sha256, self._tell)
                async with aclosing(parts):
                    await self._store.receive(DIRECTORY, file.name, parts, writer=claim_of(file.name, self._claim))

            try:
                await persistently(once, self._tell)
            except download.WrongHash as error:
                raise RemoteError(
                    f"{title}: {error}: it is not copied into the mirror. Correct the stream (boot.streamUrl or "
                    "boot.streamFile), or the file on that server"
                ) from None
            except RemoteError as error:
                raise RemoteError(
                    f"{title} cannot be copied to the artifact host: {error}. Run the same command again"
                ) from None

    async def check_served(self, title: str, file: MirroredFile, size: int) -> None:
        """Check whether the web server serves the file, as far as that can be seen from here."""
        import httpx

        url = file.url_below(self._context.settings.need_artifacts().boot_base_url)
        try:
            async with web.client(self._context.settings, timeout=_TIMEOUT) as client:
                answer = await client.head(url, headers={"Accept-Encoding": "identity"})
        except httpx.HTTPError as error:
            await self._context.status.warn(
                f"{title}: it cannot be checked from here whether {url} is served "
                f"({str(error) or type(error).__name__}): check that the machines reach it"
            )
            return
        length = answer.headers.get("Content-Length", str(size))
        if answer.is_error or length != str(size):
            answer_text = f"HTTP {answer.status_code}" if answer.is_error else f"{length} bytes"
            raise RemoteError(
                f"{title} is in the mirror with {size} bytes, but {url} answers {answer_text}: correct"
                " artifacts.bootBaseUrl or artifacts.directory, or the configuration of that web server"
            )


def _claim(inputs: Values, urn: str) -> str:
    """32 hexadecimal digits: the same in each run of a stack, and different for other stacks."""
    return hmac.new(str(inputs["pathSeed"]).encode(), urn.encode(), hashlib.sha256).hexdigest()[:32]


def _file(values: Mapping[str, Any]) -> MirroredFile:
    return MirroredFile(url=str(values["url"]), sha256=str(values["sha256"]))


def _by_name(files: Mapping[str, Any]) -> dict[str, MirroredFile]:
    found = [_file(values) for values in files.values()]
    return {file.name: file for file in found}


def _names(files: Mapping[str, Any]) -> set[str]:
    return {*_by_name(files)}


def _urls(context: Context, inputs: Values) -> Any:
    settings, files = context.settings.artifacts, inputs.get("files")
    if settings is None or not isinstance(files, Mapping) or has_unknown(files):
        return UNKNOWN
    return {title: _file(files[title]).url_below(settings.boot_base_url) for title in files}
