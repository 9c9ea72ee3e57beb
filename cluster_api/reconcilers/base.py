"""Base class of reconcilers: reads the object, does nothing while it is paused, and writes its status."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from metal_ipi.cluster_api import conditions
from metal_ipi.cluster_api.absences import Absences, TooManyAway
from metal_ipi.cluster_api.api import MACHINE, SECRET, Api, Object, Resource, owner_of
from metal_ipi.cluster_api.claims import Claims
from metal_ipi.cluster_api.clusters import Clusters, NotUsable, Work, is_paused, leaving
from metal_ipi.cluster_api.engine.plan import Unsupported
from metal_ipi.cluster_api.installations import Installations
from metal_ipi.cluster_api.logs import gathered, stamps
from metal_ipi.cluster_api.reads import Reader, Reads
from metal_ipi.cluster_api.store import owned_by, secret
from metal_ipi.components.cluster_api.objects import logs_secret
from metal_ipi.provider.errors import InvalidInputs, ProviderError
from metal_ipi.stacks.problems import SettingsError

_OFTEN = 3
"""A step that failed this often is reported as failed."""
JOINING, SOON, LATER, CALLED, RARELY = 2.0, 5.0, 20.0, 60.0, 600.0
"""Seconds until the next reconciliation if no event causes one: while a node is about to join, while a step is in
progress, otherwise, where an event of another object is waited for, and where nothing but objects of the hub can
change."""
HELD = "WaitingForFacility", "the preflight has not passed, or other clusters come first: see the MetalIpiCluster"
"""Reason and message of an object of a cluster that is not to be installed yet."""
_MESSAGES = 15.0
"""Seconds between two changes of an object in which only messages differ. Cluster API repeats a worker's message in the
conditions of its Machine, MachineSet, MachineDeployment and Cluster (*_status.go of its controllers), and the hub
converts each of these to the three other versions of its definition."""


@dataclass(frozen=True, kw_only=True)
class Hub:
    """What reconcilers work with."""

    api: Api
    reads: Reads
    """For looks: what they decide about deletions and claims is asked of `api`."""
    clusters: Clusters
    claims: Claims
    absences: Absences
    installations: Installations


@dataclass(kw_only=True)
class Said:
    """The changes to write to an object."""

    main: str = conditions.READY
    """The condition that Cluster API mirrors."""
    conditions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    status: dict[str, Any] = field(default_factory=dict[str, Any])
    spec: dict[str, Any] = field(default_factory=dict[str, Any])
    again: float = LATER
    """Seconds until the next look."""

    def ready(self, so: bool | None, reason: str, message: str = "", *, again: float = SOON) -> Said:
        """Set the main condition; if it is not true, the next reconciliation comes after so many seconds."""
        self.conditions.append(conditions.condition(self.main, so, reason, message))
        if not so:
            self.again = again
        return self


class Reconciler(ABC):
    """One kind of object."""

    resource: ClassVar[Resource]
    main: ClassVar[str] = conditions.READY
    referred: ClassVar[str] = ""
    """The field of a Cluster's spec that names the one object of this kind; empty: there may be many."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._applied: dict[tuple[str, str], tuple[int, float]] = {}
        """The Secrets that were applied last, by namespace and name: a hash of each, and until when it counts."""
        self._wrote: dict[tuple[str, str], float] = {}
        """When a status was written that was written just now, by the object's namespace and name, on the monotonic
        clock."""

    async def reconcile(self, namespace: str, name: str) -> float:
        """Reconcile an object once; returns the seconds until the next time. It may be cancelled at any moment, and is
        then repeated. Raises ApiError and StateError."""
        item = await self._hub.reads.get(self.resource, namespace, name)
        if item is None or leaving(item):  # `gone` has the word
            return LATER
        cluster = await self._hub.clusters.cluster_of(item, self._hub.reads)
        if is_paused(item, cluster):
            if not await self._is_still(item, cluster):
                return SOON
            await self._write(item, Said(conditions=[conditions.paused(True)]))
            return LATER
        said = Said(main=self.main)
        if cluster is None:
            said.ready(False, "WaitingForCluster", "no Cluster owns this object yet")
        elif not self.is_meant(item, cluster):
            said.ready(False, "NotReferred", self._stranger(item, cluster))
        else:
            try:
                work = await self._hub.clusters.recent(cluster, self._hub.reads)
                work.engine.may_leave = partial(self._hub.absences.in_place, work)
                said = await self._reconcile(item, work)
                await self._publish_logs(work)
            except TooManyAway as error:
                said.ready(False, error.reason, str(error), again=LATER)  # many may wait
            except NotUsable as error:
                said.ready(False, error.reason, str(error))
            except SettingsError as error:
                said.ready(False, "SettingsRefused", str(error))
            except (Unsupported, InvalidInputs) as error:
                said.ready(False, "ProgramRefused", str(error))
            except (ProviderError, ValueError) as error:
                said.ready(False, "NotPossible", str(error))
        said.conditions.append(conditions.paused(False))
        await self._write(item, said)
        return said.again

    async def gone(self, namespace: str, name: str) -> bool:
        """One step of the deletion of an object; returns whether it is complete. Raises ApiError."""
        item = await self._hub.api.get(self.resource, namespace, name)
        if item is None:
            return True
        cluster = await self._hub.clusters.cluster_of(item, self._hub.api)
        if is_paused(item, cluster):
            return False
        if cluster is None:  # nothing was made for it
            return True
        reason = "Deleting"
        try:
            if not self.is_meant(item, cluster):
                return await self._stranger_gone(item, cluster)
            work = await self._hub.clusters.open(cluster, self._hub.api)
            if await self._gone(item, work):
                return True
            message = doing(work, self._mine(item, work))
        except TooManyAway as error:
            reason, message = error.reason, str(error)
        except (NotUsable, ProviderError, ValueError) as error:  # ValueError: the stream of images cannot be had
            message = f"the resources cannot be deleted: {error}"
        await self._write(item, Said(main=self.main).ready(False, reason, message))
        return False

    @abstractmethod
    async def _reconcile(self, item: Object, work: Work) -> Said: ...

    def is_meant(self, item: Object, cluster: Object) -> bool:
        """Whether it is the object to which its Cluster refers; always true for kinds to which a Cluster does not
        refer."""
        reference: Mapping[str, Any] = (cluster.get("spec") or {}).get(self.referred) or {}
        wanted = self.resource.kind, item["metadata"]["name"]
        return not self.referred or (reference.get("kind"), reference.get("name")) == wanted

    def _stranger(self, item: Object, cluster: Object) -> str:
        return (
            f"Cluster {cluster['metadata']['name']}: spec.{self.referred} names another object than "
            f"{item['metadata']['name']}, so this one is ignored: refer to this one there, or delete it"
        )

    async def _stranger_gone(self, item: Object, cluster: Object) -> bool:
        """Whether an object to which its Cluster does not refer can be deleted. Raises NotUsable if it must not."""
        return True

    @abstractmethod
    async def _gone(self, item: Object, work: Work) -> bool:
        """Begin the remaining steps of the deletion; returns whether none is left. Raises NotUsable if it must not be
        deleted."""

    def _held(self, work: Work) -> bool:
        """Whether nothing may be done to a server yet. An event of the MetalIpiCluster tells when it may."""
        return not work.checked or not self._hub.installations.begun(work)

    async def _machine(self, item: Object, work: Work) -> Object:
        """The Machine that owns the object. Raises NotUsable while there is none."""
        machine = await self._owner(item, work, self._hub.reads)
        if machine is None:
            raise NotUsable("WaitingForMachine", "no Machine owns this object yet")
        return machine

    async def _owner(self, item: Object, work: Work, reader: Reader) -> Object | None:
        """The Machine that owns the object; None if there is none."""
        name = owner_of(item, MACHINE.kind)
        return await reader.get(MACHINE, work.namespace, name) if name else None

    def _mine(self, item: Object, work: Work) -> Callable[[str], bool]:
        """Selects, by name, the resources that belong to an object."""
        return lambda name: False

    def _steps(self, item: Object, work: Work) -> Callable[[str], bool]:
        """Selects, by name, the resources that this reconciler creates."""
        return self._mine(item, work)

    async def _is_still(self, item: Object, cluster: Object | None) -> bool:
        """Stop creations for a paused object, and for all objects of a paused Cluster. Returns whether nothing runs any
        more: then the objects do not change while `clusterctl move` copies them."""
        engine = None if cluster is None else await self._hub.clusters.engine_of(cluster)
        if cluster is None or engine is None:
            return True
        mine = _all
        if not is_paused({"metadata": {}}, cluster):
            with contextlib.suppress(NotUsable):  # nothing is begun then
                mine = self._steps(item, await self._hub.clusters.open(cluster, self._hub.api))
        await engine.stop(mine)
        return not engine.running(mine)

    async def _publish_logs(self, work: Work) -> None:
        """Publish new logs that a failed step gathered from machines, before the failure is reported."""
        if not work.engine.failures(_all):
            return
        directory = Path(work.settings.install.log_directory) / work.name
        found = await asyncio.to_thread(stamps, directory)
        if not found - work.engine.published:
            return
        if data := await asyncio.to_thread(gathered, directory):
            body = secret(work.name, owned_by(work.facility), data)
            await self._hub.api.apply(SECRET, work.namespace, logs_secret(work.name), body)
        work.engine.published = found

    async def _apply(self, namespace: str, name: str, body: Mapping[str, Any]) -> None:
        """Apply a Secret; one that was applied with the same content is left alone for RARELY seconds."""
        content, now = hash(json.dumps(body, sort_keys=True)), time.monotonic()
        before, until = self._applied.get((namespace, name), (0, now))
        if content != before or until <= now:
            await self._hub.api.apply(SECRET, namespace, name, body)
            self._applied[namespace, name] = (content, now + RARELY)

    async def _write(self, item: Object, said: Said) -> None:
        """Writes only the changed fields; nothing if none changed, or if messages changed that were written just now:
        then `said.again` is when they may be written."""
        metadata, api, now = item["metadata"], self._hub.api, time.monotonic()
        place = (self.resource, metadata["namespace"], metadata["name"])
        spec = {key: value for key, value in said.spec.items() if (item.get("spec") or {}).get(key) != value}
        if spec:
            await api.patch(*place, {"spec": spec})
        before: Mapping[str, Any] = item.get("status") or {}
        self._wrote = {key: when for key, when in self._wrote.items() if when > now - _MESSAGES}
        status = {**said.status, "conditions": conditions.written(item, said.conditions)}
        changed = {key: value for key, value in status.items() if before.get(key) != value}
        wrote = self._wrote.get(place[1:])
        if wrote and set(changed) == {"conditions"} and conditions.differ_in_messages(before, status):
            said.again = min(said.again, wrote + _MESSAGES - now)
            return
        if changed:
            self._wrote[place[1:]] = now
            await api.patch(*place, {"status": changed}, "status")


def refuse_while_it_stays(work: Work) -> None:
    """Raises NotUsable where a Cluster is not being deleted."""
    if not leaving(work.cluster):
        raise NotUsable(
            "ClusterStays",
            f"it is only deleted with its Cluster: delete Cluster {work.namespace}/{work.name}, or keep both",
        )


def _all(name: str) -> bool:
    return True


def doing(work: Work, mine: Callable[[str], bool]) -> str:
    """A text for people with the latest failures, and then the running steps."""
    engine = work.engine
    failed = [f"{each.name} failed ({each.times} times): {each.message}" for each in engine.failures(mine)]
    running = [f"{name}: {said}" if said else name for name, said in sorted(engine.running(mine).items())]
    return "\n".join([*failed, *running])


def reason_of(work: Work, mine: Callable[[str], bool], waiting: str) -> str:
    """The same as a condition's reason; `waiting` if nothing runs. A failed step is repeated. A reason that ends in
    Refused needs a change by people."""
    if failures := work.engine.failures(mine):
        return conditions.STEP_FAILED if any(each.times >= _OFTEN for each in failures) else "Failing"
    return "Working" if work.engine.running(mine) else waiting
