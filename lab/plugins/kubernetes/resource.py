"""The life of an object: applied by the server, compared by dry runs, waited for, deleted for good."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.provider import PropertyDiffKind

from lab.plugins.base import EngineLog, InitFailed, PluginError, Properties, Resource
from lab.plugins.kubernetes import objects
from lab.plugins.kubernetes.client import ApiError, Client, Conflict, KindUnknown, Unreachable
from lab.plugins.kubernetes.inputs import REPLACE_UNREADY, Kind, kind_problems, refuse_annotations
from lab.plugins.kubernetes.objects import Object
from lab.plugins.kubernetes.readiness import completed, look_of, related_to
from lab.plugins.values import UNKNOWN, diff_response, differences, plain_map, unknown, wrap, wrap_map

DEFAULT_TIMEOUT_SECONDS = 600.0
"""As officially: for becoming ready, and for going away."""

COMING_SECONDS = 30.0
"""How long a create waits for its kind or its namespace, which something else may be about to make."""

POLL_SECONDS = 0.5
TELL_EVERY_SECONDS = 10.0
_IDENTITY = ("apiVersion", "kind", "metadata.name", "metadata.namespace")
_FIXED: Mapping[str, tuple[str, ...]] = {
    "Secret": ("data", "type"),
    "ConfigMap": ("data", "binaryData"),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName"),
    "Service": ("spec.clusterIP",),
    "Deployment": ("spec.selector",),
    "StatefulSet": (
        "spec.podManagementPolicy",
        "spec.revisionHistoryLimit",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    "RoleBinding": ("roleRef",),
    "Job": ("spec.completions", "spec.parallelism", "spec.selector", "spec.template"),
}
"""What takes a new object, of Kubernetes' own kinds; Secrets and ConfigMaps may be changed where the provider is told
so: as officially (pulumi-kubernetes, provider/pkg/provider/diff.go)."""


class KubernetesObject(Resource):
    """One kind; the inputs are its manifest."""

    def __init__(self, kind: Kind, client: Client, log: EngineLog) -> None:
        self._kind = kind
        self._client = client
        self._log = log

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Type and version filled in; a Secret's texts encoded."""
        failures = list(kind_problems(self._kind, request.new_inputs))
        if failures:
            return api.CheckResponse(request.new_inputs, failures)
        inputs: Properties = {name: value for name, value in request.new_inputs.items() if name != "version"}
        inputs |= {"apiVersion": wrap(self._kind.api_version), "kind": wrap(self._kind.kind)}
        if self._kind.kind == "Secret" and self._kind.fields is not None:
            inputs = objects.without_string_data(inputs)
        plain = plain_map(inputs)
        if plain["metadata"] != UNKNOWN:
            refuse_annotations(self._kind.kind, objects.annotations_of(plain))
            look_of(plain)
        return api.CheckResponse(inputs, [])

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """What applying would change. Without a cluster, what has changed in the inputs."""
        old = objects.known_inputs(request.old_state)
        inputs = request.new_inputs
        found = dict(differences(old, inputs))
        before, after = plain_map(request.old_state)["metadata"], plain_map(inputs).get("metadata")
        if isinstance(after, dict):
            if after.get("namespace") == before.get("namespace"):
                found.pop("metadata.namespace", None)  # the one that it would be in anyway
            if after.get("name") != before["name"]:
                found["metadata.name"] = PropertyDiffKind.UPDATE
        replaces = {path for path in found if self._replaces(path)}
        if self._kind.kind == "Job" and await self._is_unready(plain_map(inputs)):
            found[f"metadata.annotations.{REPLACE_UNREADY}"] = PropertyDiffKind.UPDATE
            replaces.add(f"metadata.annotations.{REPLACE_UNREADY}")
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

    async def _is_unready(self, job: Object) -> bool:
        """Whether a Job is to be made anew that has not succeeded."""
        if objects.annotations_of(job).get(REPLACE_UNREADY) != "true":
            return False
        try:
            live = await self._client.get(job)
        except Unreachable:
            return False  # which is told below
        return live is not None and not completed(live)

    def _replaces(self, path: str) -> bool:
        settings, kind = self._client.settings, self._kind.kind
        mutable = {"Secret": settings.secret_mutable, "ConfigMap": settings.config_map_mutable}.get(kind, False)
        fixed = () if self._kind.fields is None or mutable else _FIXED.get(kind, ())
        return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in (*_IDENTITY, *fixed))

    async def _dry_difference(
        self, request: api.DiffRequest, inputs: Properties, found: dict[str, PropertyDiffKind]
    ) -> dict[str, PropertyDiffKind]:
        """Between the live object and what applying would make of it."""
        manifest = objects.manifest(inputs)
        manager = objects.field_manager(request.urn, plain_map(request.old_state))
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
        different = dict(differences(wrap_map(objects.substance(live)), wrap_map(objects.substance(wished))))
        if not different and objects.owned_by(live, manager) != objects.owned_by(wished, manager):
            # The object stays as it is, but whose its fields are does not.
            return found or {"metadata": PropertyDiffKind.UPDATE}
        return different

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Apply it, unless it is there already and somebody else's. A preview has the API server judge it."""
        inputs = request.properties
        if request.preview:
            return api.CreateResponse("", await self._rehearsed(request.urn, inputs, {}))
        live, manager = await self._made(request.urn, inputs, {}, request.timeout)
        return api.CreateResponse(objects.identifier(live), objects.checkpoint(live, inputs, manager))

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Apply it anew: fields that are no longer in the program go, if nobody else owns them."""
        inputs, state = request.news, plain_map(request.olds)
        if request.preview:
            return api.UpdateResponse(await self._rehearsed(request.urn, inputs, state))
        live, manager = await self._made(request.urn, inputs, state, request.timeout)
        return api.UpdateResponse(objects.checkpoint(live, inputs, manager))

    async def _made(self, urn: str, inputs: Properties, state: Object, timeout: float) -> tuple[Object, str]:
        """Applied and ready, and by which field manager."""
        manager = objects.field_manager(urn, state)
        manifest = await self._arrival(urn, objects.manifest(inputs))
        if not state:
            await self._must_be_ours(manifest, manager)
        live = await self._apply(manifest, inputs, manager)
        return await self._ready(urn, live, inputs, manager, timeout or DEFAULT_TIMEOUT_SECONDS), manager

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """The object as it is; inputs follow where they were changed. For an import: all of it."""
        try:
            live = await self._client.get(self._of(request.resource_id))
        except KindUnknown:
            live = None
        if live is None:
            return api.ReadResponse("", {}, {})
        known = request.inputs or objects.known_inputs(request.properties)
        plain = objects.manifest(known)
        followed = objects.pruned(live, plain) if plain else objects.substance(live)
        inputs = objects.concealed(wrap_map(followed), known, kind=self._kind.kind)
        manager = objects.field_manager(request.urn, plain_map(request.properties))
        return api.ReadResponse(request.resource_id, objects.checkpoint(live, inputs, manager), inputs)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Delete the very object that was made, and wait until it is gone."""
        document, state = self._of(request.resource_id), plain_map(request.properties)
        try:
            if self._kind.patch:  # what it owned and nobody else does goes; the object stays
                if await self._client.get(document) is not None:
                    await self._client.apply(document, objects.field_manager(request.urn, state), force=False)
                return
            await self._delete(request, document, (state.get("metadata") or {}).get("uid"))
        except KindUnknown:
            return  # its objects went with it
        except Unreachable as error:
            if not self._client.settings.delete_unreachable:
                raise PluginError(
                    f"{objects.title(document)} cannot be deleted: {error}. If the cluster is no more, set"
                    " deleteUnreachable on the provider, or `pulumi state delete`"
                ) from None
            await self._log.warning(request.urn, f"{objects.title(document)} is taken for deleted: {error}")

    def _of(self, identifier: str) -> Object:
        """What an object of this kind is known by."""
        namespace, _, name = identifier.rpartition("/")
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        return {"apiVersion": self._kind.api_version, "kind": self._kind.kind, "metadata": metadata}

    async def _delete(self, request: api.DeleteRequest, document: Object, uid: str | None) -> None:
        live = await self._client.get(document)
        if live is None:
            return
        uid = uid or str(live["metadata"]["uid"])
        if live["metadata"]["uid"] != uid:
            await self._log.warning(request.urn, f"{objects.title(document)} is another one by now: it is left alone")
            return
        try:
            await self._client.delete(document, uid)
        except ApiError as error:
            if error.status != 409:
                raise

        async def still_there() -> str | None:
            now = await self._client.get(document)
            if now is None or now["metadata"]["uid"] != uid:
                return None
            holders = now["metadata"].get("finalizers") or (now.get("spec") or {}).get("finalizers")
            return f"it is held by {', '.join(holders)}" if isinstance(holders, list) and holders else "it is there"

        name, seconds = objects.title(document), request.timeout or DEFAULT_TIMEOUT_SECONDS
        if reason := await self._wait(request.urn, f"waiting until {name} is gone", still_there, seconds):
            raise PluginError(f"{name} is not gone {seconds:.0f} s after its deletion: {reason}")

    async def _wait(
        self, urn: str, what: str, missing: Callable[[], Awaitable[str | None]], seconds: float
    ) -> str | None:
        """Look until nothing is missing; after so many seconds, what still is."""
        started, told = time.monotonic(), -TELL_EVERY_SECONDS
        while (reason := await missing()) is not None:
            waited = time.monotonic() - started
            if waited >= seconds:
                return reason
            if waited - told >= TELL_EVERY_SECONDS:
                told = waited
                await self._log.status(urn, f"{what}, for {waited:.0f} s: {reason}")
            await asyncio.sleep(min(POLL_SECONDS, max(seconds - waited, 0.05)))
        return None

    async def _rehearsed(self, urn: str, inputs: Properties, state: Object) -> Properties:
        """What a preview knows of the object; refusals of the API server are told now."""
        if objects.is_known(inputs):
            manifest = objects.manifest(inputs)
            manager = objects.field_manager(urn, state)
            try:
                # What is there already is replaced: its fixed fields would be refused, before the new one is made.
                replaced = not state and await self._must_be_ours(manifest, manager)
                if not replaced:
                    await self._apply(manifest, inputs, manager, dry_run=True)
            except (Unreachable, KindUnknown) as error:
                await self._log.warning(urn, f"not tried on the cluster: {error}")
            except ApiError as error:
                if error.status != 404:  # its namespace comes with the same update
                    raise
        return {**objects.concealed(inputs, inputs), "status": unknown()}

    async def _apply(
        self, manifest: Object, inputs: Properties, manager: str, *, dry_run: bool = False, force: bool = False
    ) -> Object:
        force = force or objects.annotations_of(manifest).get("pulumi.com/patchForce") == "true"
        try:
            return await self._client.apply(manifest, manager, force=force, dry_run=dry_run)
        except ApiError as error:
            error.args = (objects.scrubbed(str(error), objects.secret_texts(inputs)),)
            raise

    async def _must_be_ours(self, manifest: Object, manager: str) -> bool:
        """Whether the object is there, and of this resource, which began to make it. Another one's is refused, unless
        the provider takes such over."""
        live = await self._client.get(manifest)
        if self._kind.patch:
            if live is None:
                raise PluginError(f"{objects.title(manifest)} is not there, and a patch does not make it")
            return False
        if live is None or objects.owned_by(live, manager) is not None:
            return live is not None
        if self._client.settings.upsert:
            return False
        raise PluginError(
            f"{objects.title(live)} exists already, and this resource did not make it: import it, or delete it"
        )

    async def _arrival(self, urn: str, manifest: Object) -> Object:
        """The manifest with its namespace, once the cluster knows both the kind and the namespace."""
        placed, missing = manifest, PluginError()

        async def waits_for() -> str | None:
            nonlocal placed, missing
            try:
                placed = await self._client.placed(manifest)
            except KindUnknown as error:
                missing = error
                return str(error)
            namespace = placed["metadata"].get("namespace")
            wanted: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            if namespace is None or await self._client.get(wanted) is not None:
                return None
            missing = PluginError(f"{objects.title(placed)} cannot be made: there is no namespace {namespace}")
            return str(missing)

        if await self._wait(urn, "waiting", waits_for, COMING_SECONDS) is not None:
            raise missing
        return placed

    async def _ready(self, urn: str, live: Object, inputs: Properties, manager: str, seconds: float) -> Object:
        """Wait until it is as it should be. Whatever goes wrong, what was made stays in the state."""
        look, name, latest = look_of(live), objects.title(live), live

        async def seen(known: Object) -> str | None:
            other = related_to(known)
            return look(known, None if other is None else await self._client.get(other))

        async def missing() -> str | None:
            nonlocal latest
            if latest is not live or await seen(live) is not None:
                now = await self._client.get(live)
                if now is None:
                    raise PluginError(f"{name} disappeared while it was waited for")
                latest = now
            return await seen(latest)

        try:
            if reason := await self._wait(urn, f"waiting for {name}", missing, seconds):
                raise PluginError(f"{name} is not ready after {seconds:.0f} s: {reason}")
        except (PluginError, asyncio.CancelledError) as error:
            reason = str(error) or f"cancelled while waiting for {name}"
            properties = objects.checkpoint(latest, inputs, manager)
            raise InitFailed(objects.identifier(latest), properties, reason) from None
        return latest
