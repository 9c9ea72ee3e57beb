"""The life of an object: applied by the server, compared by dry runs, waited for, deleted for good."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Mapping

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import PropertyDiffKind

from lab.plugins.base import EngineLog, InitFailed, PluginError, Properties, Resource
from lab.plugins.differences import diff_response, map_differences
from lab.plugins.kubernetes import objects
from lab.plugins.kubernetes.client import ApiError, Client, Conflict, KindUnknown, Unreachable
from lab.plugins.kubernetes.inputs import Kind, annotation_problems, kind_problems
from lab.plugins.kubernetes.objects import Object
from lab.plugins.kubernetes.readiness import look_of
from lab.plugins.values import UNKNOWN, plain_map, unknown, wrap, wrap_map

DEFAULT_TIMEOUT_SECONDS = 600.0
"""As officially: for becoming ready, and for going away."""

COMING_SECONDS = 30.0
"""How long a create waits for its kind or its namespace, which something else may be about to make."""

POLL_SECONDS = 0.5
TELL_EVERY_SECONDS = 10.0
_AUTONAMED = "pulumi.com/autonamed"
_IDENTITY = ("apiVersion", "kind", "metadata.name", "metadata.namespace")
_FIXED = {"Secret": ("data", "type"), "ConfigMap": ("data", "binaryData")}
"""What takes a new object, unless the provider is told that these kinds may be changed: as officially."""


class KubernetesObject(Resource):
    """One kind; the inputs are its manifest."""

    def __init__(self, kind: Kind, client: Client, log: EngineLog) -> None:
        self._kind = kind
        self._client = client
        self._log = log

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Type and version filled in, a name for what has none; a Secret's texts encoded."""
        failures = list(kind_problems(self._kind, request.new_inputs))
        if failures:
            return api.CheckResponse(request.new_inputs, failures)
        inputs: Properties = {name: value for name, value in request.new_inputs.items() if name != "version"}
        inputs |= {"apiVersion": wrap(self._kind.api_version), "kind": wrap(self._kind.kind)}
        if self._kind.kind == "Secret" and self._kind.fields is not None:
            inputs = objects.without_string_data(inputs)
        plain = plain_map(inputs)
        if plain.get("metadata") != UNKNOWN:
            failures = list(annotation_problems(objects.annotations_of(plain)))
            look_of(plain)
            if not (plain.get("metadata") or {}).get("name"):
                inputs = _named(inputs, request)
        return api.CheckResponse(inputs, failures)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """What applying would change. Without a cluster, what has changed in the inputs."""
        old = objects.known_inputs(request.old_state)
        inputs = _kept(request.new_inputs, old, request.ignore_changes)
        found = dict(map_differences(old, inputs))
        before, after = plain_map(request.old_state)["metadata"], plain_map(inputs).get("metadata")
        if isinstance(after, dict):
            if after.get("namespace") == before.get("namespace"):
                found.pop("metadata.namespace", None)  # the one that it would be in anyway
            if after.get("name") != before["name"]:
                found["metadata.name"] = PropertyDiffKind.UPDATE
        replaces = {path for path in found if self._replaces(path)}
        if not replaces and objects.is_known(inputs):
            try:
                found = await self._dry_difference(request, inputs, found)
            except Unreachable as error:
                await self._log.warning(request.urn, f"compared with the last known state only: {error}")
        response = diff_response(found, replaces)
        if replaces and isinstance(after, dict):
            there = (before["name"], before.get("namespace"))
            response.delete_before_replace = there == (after.get("name"), after.get("namespace") or there[1])
        return response

    def _replaces(self, path: str) -> bool:
        settings = self._client.settings
        mutable = {"Secret": settings.secret_mutable, "ConfigMap": settings.config_map_mutable}
        own = self._kind.kind if self._kind.fields is not None else ""
        fixed = () if mutable.get(own) else _FIXED.get(own, ())
        return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in (*_IDENTITY, *fixed))

    async def _dry_difference(
        self, request: api.DiffRequest, inputs: Properties, found: dict[str, PropertyDiffKind]
    ) -> dict[str, PropertyDiffKind]:
        """Between the live object and what applying would make of it."""
        manifest = objects.manifest(inputs)
        manager = objects.field_manager(request.urn, manifest, plain_map(request.old_state))
        live = await self._client.get(manifest)
        if live is None:
            await self._log.warning(request.urn, f"{objects.title(manifest)} is gone; it will be made again")
            missing = {name: PropertyDiffKind.ADD for name in manifest if name not in ("apiVersion", "kind")}
            return {**found, **missing}
        try:
            wished = await self._apply(manifest, inputs, manager, dry_run=True)
        except Conflict as error:
            # No failure yet: a refresh asks for differences too. What applies in earnest, or in a preview, will fail.
            await self._log.warning(request.urn, str(error))
            wished = await self._apply(manifest, inputs, manager, dry_run=True, force=True)
        except ApiError as error:
            await self._log.warning(request.urn, str(error))
            return found
        different = dict(map_differences(wrap_map(objects.substance(live)), wrap_map(objects.substance(wished))))
        if not different and objects.owned_by(live, manager) != objects.owned_by(wished, manager):
            # The object stays as it is, but whose its fields are does not.
            return found or {"metadata": PropertyDiffKind.UPDATE}
        return different

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Apply it, unless it is there already and somebody else's. A preview has the API server judge it."""
        inputs = request.properties
        if request.preview:
            return api.CreateResponse("", await self._rehearsed(request.urn, inputs, {}))
        manager = objects.field_manager(request.urn, plain_map(inputs), {})
        manifest = await self._arrival(request.urn, objects.manifest(inputs))
        await self._must_be_ours(manifest, manager)
        live = await self._apply(manifest, inputs, manager)
        live = await self._ready(request.urn, live, inputs, manager, request.timeout)
        return api.CreateResponse(objects.identifier(live), objects.checkpoint(live, inputs, manager))

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Apply it anew: fields that are no longer in the program go, if nobody else owns them."""
        inputs = _kept(request.news, objects.known_inputs(request.olds), request.ignore_changes)
        state = plain_map(request.olds)
        if request.preview:
            return api.UpdateResponse(await self._rehearsed(request.urn, inputs, state))
        manager = objects.field_manager(request.urn, plain_map(inputs), state)
        manifest = await self._arrival(request.urn, objects.manifest(inputs))
        live = await self._apply(manifest, inputs, manager)
        live = await self._ready(request.urn, live, inputs, manager, request.timeout)
        return api.UpdateResponse(objects.checkpoint(live, inputs, manager))

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """The object as it is; inputs follow where they were changed. For an import: all of it."""
        gone = api.ReadResponse("", {}, {})
        namespace, _, name = request.resource_id.rpartition("/")
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        try:
            live = await self._client.get(
                {"apiVersion": self._kind.api_version, "kind": self._kind.kind, "metadata": metadata}
            )
        except KindUnknown:
            return gone
        if live is None:
            return gone
        known = request.inputs or objects.known_inputs(request.properties)
        plain = objects.manifest(known)
        followed = objects.pruned(live, plain) if plain else objects.imported(live)
        inputs = objects.concealed(wrap_map(followed), known, kind=self._kind.kind)
        manager = objects.field_manager(request.urn, plain, plain_map(request.properties))
        return api.ReadResponse(request.resource_id, objects.checkpoint(live, inputs, manager), inputs)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Delete the very object that was made, and wait until it is gone."""
        state = plain_map(request.properties)
        namespace, _, name = request.resource_id.rpartition("/")
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        document: Object = {"apiVersion": self._kind.api_version, "kind": self._kind.kind, "metadata": metadata}
        try:
            await self._delete(
                request, document, (state.get("metadata") or {}).get("uid"), objects.annotations_of(state)
            )
        except KindUnknown:
            return  # its objects went with it
        except Unreachable as error:
            if not self._client.settings.delete_unreachable:
                raise PluginError(
                    f"{objects.title(document)} cannot be deleted: {error}. If the cluster is no more, set"
                    " deleteUnreachable on the provider, or `pulumi state delete`"
                ) from None
            await self._log.warning(request.urn, f"{objects.title(document)} is taken for deleted: {error}")

    async def _delete(
        self, request: api.DeleteRequest, document: Object, uid: str | None, annotations: Mapping[str, object]
    ) -> None:
        live = await self._client.get(document)
        if live is None:
            return
        uid = uid or str(live["metadata"]["uid"])
        if live["metadata"]["uid"] != uid:
            await self._log.warning(request.urn, f"{objects.title(document)} is another one by now: it is left alone")
            return
        policy = str(annotations.get("pulumi.com/deletionPropagationPolicy") or "background").capitalize()
        try:
            await self._client.delete(document, uid, policy)
        except ApiError as error:
            if error.status != 409:
                raise

        def still_there(now: Object | None) -> str | None:
            if now is None or now["metadata"]["uid"] != uid:
                return None
            holders = now["metadata"].get("finalizers") or (now.get("spec") or {}).get("finalizers")
            return f"it is held by {', '.join(holders)}" if isinstance(holders, list) and holders else "it is there"

        seconds = _timeout(request.timeout, annotations)
        started, told = time.monotonic(), 0.0
        while (reason := still_there(live)) is not None:
            waited = time.monotonic() - started
            if waited >= seconds:
                raise PluginError(f"{objects.title(document)} is not gone {waited:.0f} s after its deletion: {reason}")
            if waited - told >= TELL_EVERY_SECONDS:
                told = waited
                await self._log.status(request.urn, f"waiting until {objects.title(document)} is gone: {reason}")
            await asyncio.sleep(min(POLL_SECONDS, waited + 0.05))
            live = await self._client.get(document)

    async def _rehearsed(self, urn: str, inputs: Properties, state: Object) -> Properties:
        """What a preview knows of the object; refusals of the API server are told now."""
        if objects.is_known(inputs):
            manifest = objects.manifest(inputs)
            manager = objects.field_manager(urn, manifest, state)
            try:
                if not state:
                    await self._must_be_ours(manifest, manager)
                await self._apply(manifest, inputs, manager, dry_run=True)
            except Unreachable as error:
                await self._log.warning(urn, f"not tried on the cluster: {error}")
            except KindUnknown as error:
                await self._log.warning(urn, f"not tried on the cluster: {error}")
            except ApiError as error:
                if error.status != 404:  # its namespace comes with the same update
                    raise
        return {**objects.concealed(inputs, inputs), "status": unknown()}

    async def _apply(
        self, manifest: Object, inputs: Properties, manager: str, *, dry_run: bool = False, force: bool = False
    ) -> Object:
        told = str(objects.annotations_of(manifest).get("pulumi.com/patchForce", "")).lower()
        force = force or told == "true" or (self._client.settings.patch_force and told != "false")
        try:
            return await self._client.apply(manifest, manager, force=force, dry_run=dry_run)
        except ApiError as error:
            error.args = (objects.scrubbed(str(error), objects.secret_texts(inputs)),)
            raise

    async def _must_be_ours(self, manifest: Object, manager: str) -> None:
        """An object that is there is only gone on with if this resource began to make it."""
        live = await self._client.get(manifest)
        if live is None or self._client.settings.upsert or objects.owned_by(live, manager) is not None:
            return
        raise PluginError(
            f"{objects.title(live)} exists already, and this resource did not make it: import it, delete it, or set"
            " upsertExistingObjects on the provider"
        )

    async def _arrival(self, urn: str, manifest: Object) -> Object:
        """The manifest with its namespace, once the cluster knows both the kind and the namespace."""
        started, told = time.monotonic(), -TELL_EVERY_SECONDS
        while True:
            try:
                placed = await self._client.placed(manifest)
                namespace = placed["metadata"].get("namespace")
                wanted: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                if namespace is None or await self._client.get(wanted) is not None:
                    return placed
                missing = PluginError(f"{objects.title(placed)} cannot be made: there is no namespace {namespace}")
            except KindUnknown as error:
                missing = error
            waited = time.monotonic() - started
            if waited >= COMING_SECONDS:
                raise missing
            if waited - told >= TELL_EVERY_SECONDS:
                told = waited
                await self._log.status(urn, f"waiting, for {waited:.0f} s: {missing}")
            await asyncio.sleep(POLL_SECONDS)

    async def _ready(self, urn: str, live: Object, inputs: Properties, manager: str, timeout: float) -> Object:
        """Wait until it is as it should be. Whatever goes wrong, what was made stays in the state."""
        look = look_of(live)
        name = objects.title(live)
        seconds = _timeout(timeout, objects.annotations_of(live))
        started, told = time.monotonic(), -TELL_EVERY_SECONDS
        try:
            while (missing := look(live)) is not None:
                waited = time.monotonic() - started
                if waited >= seconds:
                    raise PluginError(f"{name} is not ready after {waited:.0f} s: {missing}")
                if waited - told >= TELL_EVERY_SECONDS:
                    told = waited
                    await self._log.status(urn, f"waiting for {name}: {missing}")
                await asyncio.sleep(min(POLL_SECONDS, max(seconds - waited, 0.05)))
                now = await self._client.get(live)
                if now is None:
                    raise PluginError(f"{name} disappeared while it was waited for")
                live = now
        except (PluginError, asyncio.CancelledError) as error:
            reason = str(error) or f"cancelled while waiting for {name}"
            properties = objects.checkpoint(live, inputs, manager)
            raise InitFailed(objects.identifier(live), properties, reason) from None
        return live


def _named(inputs: Properties, request: api.CheckRequest) -> Properties:
    """With the name it had, else its logical name and seven hexadecimal digits; marked as one that may change."""
    metadata = inputs.get("metadata")
    known = dict(metadata.value) if metadata is not None and isinstance(metadata.value, Mapping) else {}
    marks = known.get("annotations")
    others = dict(marks.value) if marks is not None and isinstance(marks.value, Mapping) else {}
    old = plain_map(request.old_inputs)
    if objects.annotations_of(old).get(_AUTONAMED) == "true":
        name = str(old["metadata"]["name"])
    else:
        seed = request.random_seed or secrets.token_bytes(32)
        name = f"{request.name}-{hashlib.sha256(seed).hexdigest()[:7]}"
    known |= {"name": wrap(name), "annotations": wrap({}).with_value({**others, _AUTONAMED: wrap("true")})}
    return {**inputs, "metadata": wrap({}).with_value(known)}


def _kept(inputs: Properties, old: Properties, ignored: list[str]) -> Properties:
    """Inputs that are ignored keep their old value; paths into an input are the engine's business."""
    own = {name: value for name, value in inputs.items() if name != "version"}
    return {**own, **{name: old[name] for name in ignored if name in old}}


def _timeout(seconds: float, annotations: Mapping[str, object]) -> float:
    """The resource's own time limit, else the annotation's, else the official one."""
    return seconds or float(str(annotations.get("pulumi.com/timeoutSeconds") or DEFAULT_TIMEOUT_SECONDS))
