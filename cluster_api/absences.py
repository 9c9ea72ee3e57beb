"""How many machines of all clusters of a hub may be away at once. A machine that is away has a Lease in the providers'
own namespace.

A machine is away from the moment at which it is taken out of service until its node, or that of the machine that
replaces it, has joined; or until nobody wants another one in its place. So a Lease can only be ended by what the
objects of its cluster say, by the end of its cluster, or by people, who delete it.

Machines of a cluster that is not formed yet or that is being deleted are not limited, nor are those that never joined.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from metal_ipi.cluster_api.api import (
    CLUSTER,
    LEASE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    Api,
    Object,
    labels_of,
    micro_time,
    owner_of,
    status_of,
)
from metal_ipi.cluster_api.clusters import FORMED, NotUsable, Work, leaving
from metal_ipi.cluster_api.conditions import HEALTHY, READY
from metal_ipi.cluster_api.reconcilers.joined import JOINED
from metal_ipi.cluster_api.resources import METAL_IPI_MACHINE, OPENSHIFT_CONTROL_PLANE
from metal_ipi.cluster_api.store import CLUSTER_LABEL, NAME_LABEL

TOO_MANY = "TooManyAway"
LABEL = "metal-ipi.cluster.x-k8s.io/away"
"""The label of the Leases of machines that are away."""
_PREFIX = "metal-ipi.cluster.x-k8s.io/away-"
_OWNERS = {
    "cluster.x-k8s.io/deployment-name": MACHINE_DEPLOYMENT,
    "cluster.x-k8s.io/set-name": MACHINE_SET,
    NAME_LABEL: OPENSHIFT_CONTROL_PLANE.resource,
}
"""Labels of Machines that name the object which replaces them; the first one that a Machine has counts."""
_FRESH = 2.0
"""Seconds for which the last reading of the hub is used again, because many machines may wait and ask."""
_LEAST = 60.0
"""The shortest absence, in seconds. A node is Ready for 40 s after its server lost its power (openshift/api,
config/v1/types_node.go, DefaultNodeMonitorGracePeriod); with the worker latency profiles
MediumUpdateAverageReaction and LowUpdateSlowReaction it is Ready for longer than this."""
_logger = logging.getLogger(__name__)


class TooManyAway(NotUsable):
    """A machine is not taken out of service, because too many of the hub are away."""

    def __init__(self, message: str) -> None:
        super().__init__(TOO_MANY, message)


@dataclass(frozen=True, kw_only=True)
class Absence:
    """A machine that is away."""

    cluster: str
    """`namespace/name` of its Cluster."""
    server: str
    group: str
    """The label of all machines that the same object replaces, `key=value`; empty if nothing replaces the machine."""
    of: int
    """The number of machines in the group when none was away."""
    why: str
    since: str

    @property
    def holder(self) -> str:
        """`namespace/cluster/server`."""
        return f"{self.cluster}/{self.server}"

    @property
    def name(self) -> str:
        """The name of its Lease."""
        return f"away-{hashlib.sha256(self.holder.encode()).hexdigest()[:40]}"

    @property
    def lease(self) -> Object:
        """Its Lease."""
        told = {"cluster": self.cluster, "server": self.server, "group": self.group, "of": str(self.of)}
        annotations = {f"{_PREFIX}{key}": value for key, value in {**told, "why": self.why}.items()}
        metadata = {"name": self.name, "labels": {LABEL: ""}, "annotations": annotations}
        return {"metadata": metadata, "spec": {"holderIdentity": self.holder, "acquireTime": self.since}}

    @staticmethod
    def of_lease(lease: Object) -> Absence:
        """Read a Lease. Raises KeyError or ValueError for a Lease that this module did not make."""
        said: Mapping[str, str] = lease["metadata"].get("annotations") or {}
        told = {key: said[f"{_PREFIX}{key}"] for key in ("cluster", "server", "group", "why")}
        return Absence(**told, of=int(said[f"{_PREFIX}of"]), since=str(lease["spec"]["acquireTime"]))

    def seconds(self) -> float:
        """Seconds since it began."""
        return (datetime.now(UTC) - datetime.fromisoformat(self.since)).total_seconds()


class Absences:
    """The machines that are away. Only the leading process may call `take`."""

    def __init__(self, api: Api, namespace: str, limit: int, *, least: float = _LEAST) -> None:
        """`namespace` is the providers' own; with `limit` 0 there is no limit, and nothing is written."""
        self._api, self._namespace, self.limit, self._least = api, namespace, limit, least
        self._deciding = asyncio.Lock()
        self._there: dict[str, Absence] = {}
        self._unread, self._read = True, 0.0
        self._waiting: dict[str, frozenset[str]] = {}
        """Which machines wait, and for which."""

    @property
    def count(self) -> int:
        """The number of machines that were away at the last reading."""
        return len(self._there)

    def waits(self, work: Work, server: str) -> bool:
        """Whether a machine has to wait."""
        return _holder(work, server) in self._waiting

    async def take(self, work: Work, machine: Object, server: str, why: str) -> None:
        """Record that a Machine's server is away. Raises TooManyAway if it has to wait, and ApiError."""
        if not self.limit or leaving(work.cluster) or not joined_once(machine):
            return
        if (await work.engine.state()).named(FORMED) is None:
            return
        holder = _holder(work, server)
        async with self._deciding:
            there = await self._those_away()
            if holder not in there:
                if len(there) >= self.limit:
                    raise TooManyAway(self._told(holder, there))
                absence = await self._new(work, machine, server, why, there)
                await self._api.create(LEASE, self._namespace, absence.lease)
                there[holder] = absence
                _logger.info("%s is away (%s), %d of %d of this hub", holder, why, len(there), self.limit)
            self._waiting.pop(holder, None)

    async def in_place(self, work: Work, hostname: str) -> str:
        """The same for a node that is installed again on its server; returns why it has to wait, or an empty text.
        Raises ApiError."""
        server = next((node.name for node in work.nodes.all if node.hostname == hostname), "")
        items = await self._api.list(METAL_IPI_MACHINE.resource, work.namespace, f"{CLUSTER_LABEL}={work.name}")
        names = [owner_of(each, MACHINE.kind) for each in items if each["spec"].get("server") == server]
        machine = await self._api.get(MACHINE, work.namespace, names[0]) if names and names[0] else None
        try:
            if machine is not None:
                await self.take(work, machine, server, "installed again")
        except TooManyAway as error:
            return str(error)
        return ""

    async def settle(self, work: Work) -> None:
        """Delete the Leases of a cluster's machines that are back. Raises ApiError."""
        cluster = f"{work.namespace}/{work.name}"
        if self.limit and (self._unread or any(each.cluster == cluster for each in self._there.values())):
            async with self._deciding:
                await self._those_away()

    async def _new(self, work: Work, machine: Object, server: str, why: str, there: Mapping[str, Absence]) -> Absence:
        cluster, labels = f"{work.namespace}/{work.name}", labels_of(machine)
        group = next((f"{key}={labels[key]}" for key in _OWNERS if key in labels), "")
        machines = await self._api.list(MACHINE, work.namespace, f"{CLUSTER_LABEL}={work.name}")
        whole = [each.of for each in there.values() if (each.cluster, each.group) == (cluster, group)]
        number = max([len(_joined(machines, group)), *whole])
        return Absence(cluster=cluster, server=server, group=group, of=number, why=why, since=micro_time())

    def _told(self, holder: str, there: Mapping[str, Absence]) -> str:
        whom = ", ".join(f"{each.holder} ({each.why}, since {each.since[:19]}Z)" for each in there.values())
        message = (
            f"it waits until it may be away: of all machines of this hub {self.limit} may be at once (--max-away), and "
            f"these are: {whom}"
        )
        if self._waiting.get(holder) != (now := frozenset(there)):
            self._waiting[holder] = now
            _logger.info("%s: %s", holder, message)
        return message

    async def _those_away(self) -> dict[str, Absence]:
        """The machines that are away now, by holder; deletes the Leases of the others."""
        if not self._unread and time.monotonic() - self._read < _FRESH:
            return self._there
        found: dict[str, Absence] = {}
        for lease in await self._api.list(LEASE, self._namespace, LABEL):
            try:
                absence = Absence.of_lease(lease)
            except (KeyError, ValueError) as error:
                _logger.warning("the Lease %s counts for nothing: %r", lease["metadata"]["name"], error)
                continue
            found[absence.holder] = absence
        for cluster in {each.cluster for each in found.values()}:
            for absence in await self._over(cluster, [each for each in found.values() if each.cluster == cluster]):
                await self._api.delete(LEASE, self._namespace, absence.name)
                del found[absence.holder]
                _logger.info("%s is not away any more (%s)", absence.holder, absence.why)
        self._there, self._unread, self._read = found, False, time.monotonic()
        return found

    async def _over(self, cluster: str, absences: Sequence[Absence]) -> list[Absence]:
        """Those of a cluster's absences that are over."""
        namespace, _, name = cluster.partition("/")
        found = await self._api.get(CLUSTER, namespace, name)
        if found is None or leaving(found):
            return list(absences)
        labels = f"{CLUSTER_LABEL}={name}"
        machines = {each["metadata"]["name"]: each for each in await self._api.list(MACHINE, namespace, labels)}
        servers = {
            str(each["spec"].get("server")): (each, machines.get(owner_of(each, MACHINE.kind) or ""))
            for each in await self._api.list(METAL_IPI_MACHINE.resource, namespace, labels)
        }
        over: list[Absence] = []
        for group in {each.group for each in absences}:
            of_group = [each for each in absences if each.group == group]
            here = [each for each in of_group if each.server in servers]
            back = [each for each in here if _is_back(*servers[each.server])]
            gone = [each for each in of_group if each.server not in servers]
            # A Machine that is being deleted is not missing: it may itself wait for those that are gone.
            joined = _joined(machines.values(), group)
            missing = await self._wanted(namespace, group, max(each.of for each in of_group)) - len(joined)
            missing -= sum(_name(servers[each.server][1]) not in joined for each in here if each not in back)
            over += [*back, *gone[max(missing, 0) :]]
        return [each for each in over if each.seconds() >= self._least]

    async def _wanted(self, namespace: str, group: str, whole: int) -> int:
        """The number of machines that a group should have now, but at most as many as it had."""
        key, _, name = group.partition("=")
        owner = await self._api.get(_OWNERS[key], namespace, name) if key in _OWNERS else None
        return min(int(((owner or {}).get("spec") or {}).get("replicas") or 0), whole)


def joined_once(machine: Object) -> bool:
    """Whether a Machine has had a node, so that it was in service."""
    return bool(((machine.get("status") or {}).get("nodeRef") or {}).get("name"))


def _holder(work: Work, server: str) -> str:
    return f"{work.namespace}/{work.name}/{server}"


def _joined(machines: Iterable[Object], group: str) -> set[str]:
    """The names of a group's Machines that have joined, also of those that failed later."""
    key, _, value = group.partition("=")
    return {
        str(each["metadata"]["name"])
        for each in machines
        if group and labels_of(each).get(key) == value and joined_once(each)
    }


def _name(machine: Object | None) -> str:
    return "" if machine is None else str(machine["metadata"]["name"])


def _is_back(item: Object, machine: Object | None) -> bool:
    """Whether a MetalIpiMachine and its Machine are healthy and not being deleted."""
    if machine is None or leaving(item) or leaving(machine) or not joined_once(machine):
        return False
    well = status_of(item, READY, ("status", "reason")) == ("True", JOINED)
    return well and status_of(machine, HEALTHY) != ("False",)
