"""What goes when an object of a cluster is deleted, and what must not: no server of another, no majority of etcd."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from metal_ipi.cluster_api.absences import Absences
from metal_ipi.cluster_api.api import LEASE, Api, Object, Resource
from metal_ipi.cluster_api.claims import Claims
from metal_ipi.cluster_api.clusters import FORMED, Clusters, NotUsable, Work
from metal_ipi.cluster_api.engine.state import Entry, State, name_of
from metal_ipi.cluster_api.installations import Installations
from metal_ipi.cluster_api.leader import Leader
from metal_ipi.cluster_api.reads import Reader, Reads
from metal_ipi.cluster_api.reconcilers import quorum
from metal_ipi.cluster_api.reconcilers.base import SOON, Hub
from metal_ipi.cluster_api.reconcilers.control_plane import ControlPlaneReconciler
from metal_ipi.cluster_api.reconcilers.facility import FacilityReconciler
from metal_ipi.cluster_api.reconcilers.machine import MachineReconciler
from metal_ipi.cluster_api.settings import validated
from metal_ipi.cluster_api.store import CLUSTER_LABEL
from metal_ipi.components.boot.stream import StreamError
from tests.stacks.rack import rack

_SERVER, _INSTALLATION = "metal-ipi:index:RedfishMachine", "metal-ipi:index:Installation"


class Objects:
    """The part of `Api` that reads, makes and deletes, in memory."""

    def __init__(self) -> None:
        self.there: dict[tuple[str, str], Object] = {}

    async def get(self, kind: Resource, namespace: str, name: str) -> Object | None:
        return self.there.get((kind.kind, name))

    async def list(self, kind: Resource, namespace: str, labels: str = "") -> list[Object]:
        wanted = dict((key, value) for key, _, value in (each.partition("=") for each in labels.split(",") if each))
        found = [each for (of, _), each in self.there.items() if of == kind.kind]
        return [each for each in found if wanted.items() <= (each["metadata"].get("labels") or {}).items()]

    async def create(self, kind: Resource, namespace: str, body: Mapping[str, Any]) -> Object | None:
        return self.there.setdefault((kind.kind, body["metadata"]["name"]), dict(body))

    async def patch(self, kind: Resource, namespace: str, name: str, body: Object, subresource: str = "") -> None:
        self.there[kind.kind, name].update(body)

    def reason(self, name: str) -> str:
        """Of what an object says of itself first, Paused aside."""
        (found,) = (each for (_, of), each in self.there.items() if of == name)
        return next(each["reason"] for each in found["status"]["conditions"] if each["type"] != "Paused")

    async def delete(self, kind: Resource, namespace: str, name: str) -> None:
        del self.there[kind.kind, name]


class Steps:
    """An engine whose deletions are written down, and are over at the next look."""

    def __init__(self, *names: str) -> None:
        self.deciding = asyncio.Lock()
        self.began: list[str] = []
        self._entries = {urn: entry for urn, entry in map(_entry, names)}

    async def state(self) -> State:
        return State(entries=dict(self._entries))

    async def stop(self, mine: Any = None) -> None:
        return

    def learn(self, secrets: Any) -> None:
        return

    async def upload_again(self, hostname: str) -> None:
        return

    def going(self) -> set[str]:
        return {name_of(urn) for urn in self._entries} & set(self.began)

    def act(self, urn: str, settings: Any, action: Any, *, leaving: bool = False) -> None:
        """Machines that leave have left at the next look."""
        name = name_of(urn).replace("-departure", "-installation")
        self.began.append(name_of(urn))
        self._entries = {
            urn: replace(each, unfinished="its machine left the control plane") if name_of(urn) == name else each
            for urn, each in self._entries.items()
        }

    def remove(self, found: list[str], settings: Any, *, given_up: bool) -> bool:
        self.began += [name_of(urn) for urn in found if urn in self._entries]
        return not found


def _entry(name: str) -> tuple[str, Entry]:
    kind = _INSTALLATION if name.endswith("-installation") else _SERVER
    urn = f"urn:pulumi:rack::metal-ipi::{kind}::{name}"
    return urn, Entry(urn=urn, id="x", inputs={"spec": {}}, outputs={})


def work_of(steps: Steps) -> Work:
    """What reconcilers of a rack work with."""
    tree = rack()
    return Work(
        cluster={"metadata": {"name": "rack", "namespace": "facility"}, "spec": {}},
        facility={},
        engine=cast(Any, steps),
        store=cast(Any, None),
        tree=tree,
        settings=validated(tree),
    )


def _machine(objects: Objects, name: str, server: str, **metadata: Any) -> Object:
    made = {"metadata": {"name": name, "labels": {CLUSTER_LABEL: "rack"}, **metadata}, "spec": {"server": server}}
    objects.there["MetalIpiMachine", name] = made
    return made


def hub_of(objects: Objects, clusters: Clusters | None = None, *, limit: int = 0, installing: int = 0) -> Hub:
    """The hub that has these objects, of whose machines so many may be away, and which installs so many clusters."""
    api = cast(Api, objects)
    clusters = clusters or Clusters(api)
    return Hub(
        api=api,
        reads=Reads(api),
        clusters=clusters,
        claims=Claims(api, "own"),
        absences=Absences(api, "own", limit, least=0.0),
        installations=Installations(api, clusters, installing),
    )


def _reconciler(objects: Objects) -> tuple[MachineReconciler, Claims]:
    hub = hub_of(objects)
    return MachineReconciler(hub), hub.claims


@pytest.fixture(autouse=True)
def _no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metal_ipi.cluster_api.settings.connected", lambda settings: None)


async def _gone(reconciler: MachineReconciler, item: Object, work: Work) -> bool:
    return await reconciler._gone(item, work)  # pyright: ignore[reportPrivateUsage]


def test_a_machine_that_was_refused_takes_no_server_of_another_with_it() -> None:
    async def whole() -> None:
        objects, steps = Objects(), Steps("rack-worker-4-server", "rack-worker-4-installation")
        (reconciler, claims), work = _reconciler(objects), work_of(steps)
        first, second = (_machine(objects, name, "worker-4") for name in ("first", "second"))
        with pytest.raises(NotUsable, match="MetalIpiMachine first names it too"):
            await _gone(reconciler, second, work)
        await claims.claim(work.servers["worker-4"].mac, "facility/first")
        assert await _gone(reconciler, second, work) and not steps.began
        assert not await _gone(reconciler, first, work) and len(steps.began) == 2
        assert len(await objects.list(LEASE, "own")) == 1

    asyncio.run(whole())


def test_a_machine_keeps_its_server_when_another_one_names_it() -> None:
    class Choosing(MachineReconciler):
        async def choice(self, item: Object, work: Work) -> tuple[str, str]:
            found = await self._claim(item, {"metadata": {}, "spec": {}}, work)
            return found.server, found.message

    async def whole() -> None:
        objects, work = Objects(), work_of(Steps())
        reconciler = Choosing(hub_of(objects))
        first = _machine(objects, "first", "worker-4")
        assert await reconciler.choice(first, work) == ("worker-4", "")
        second = _machine(objects, "second", "worker-4")
        assert await reconciler.choice(first, work) == ("worker-4", "")
        assert await reconciler.choice(second, work) == ("", "server worker-4 is MetalIpiMachine first's")

    asyncio.run(whole())


def _cluster() -> Object:
    return {
        "metadata": {"name": "rack", "namespace": "facility"},
        "spec": {
            "infrastructureRef": {"kind": "MetalIpiCluster", "name": "rack"},
            "controlPlaneRef": {"kind": "OpenShiftControlPlane", "name": "rack"},
        },
    }


@pytest.mark.parametrize("kind", [FacilityReconciler, ControlPlaneReconciler])
def test_only_what_the_cluster_refers_to_is_its_own_and_goes_with_it_only(
    kind: type[FacilityReconciler | ControlPlaneReconciler],
) -> None:
    def _object(name: str) -> Object:
        return {"metadata": {"name": name, "namespace": "facility", "uid": name, "labels": {CLUSTER_LABEL: "rack"}}}

    async def whole() -> None:
        objects, steps = Objects(), Steps("rack-worker-4-server")
        reconciler = kind(hub_of(objects))
        objects.there["Cluster", "rack"] = _cluster()
        objects.there[kind.resource.kind, "rack-new"] = new = _object("rack-new")
        assert await reconciler.reconcile("facility", "rack-new") == SOON
        assert objects.reason("rack-new") == "NotReferred"
        assert await reconciler.gone("facility", "rack-new")
        with pytest.raises(NotUsable, match="delete Cluster facility/rack"):
            await reconciler._gone(_object("rack"), work_of(steps))  # pyright: ignore[reportPrivateUsage]
        assert not steps.began
        if kind is FacilityReconciler:  # the state must not go with the one that was replaced
            secret: Object = {"metadata": {"name": "rack-install-state", "ownerReferences": [{"uid": "rack-new"}]}}
            objects.there["Secret", "rack-install-state"] = secret
            assert not await reconciler.gone("facility", new["metadata"]["name"])

    asyncio.run(whole())


def test_of_a_control_plane_only_one_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All Nodes say Ready: they do for 40 s after their servers were powered off."""

    class Ready:
        def __init__(self, spec: Any, patience: float) -> None: ...

        async def away(self, names: Any) -> dict[str, str]:
            await asyncio.sleep(0)
            return {}

        async def operator(self, name: str) -> None:
            return

    monkeypatch.setattr(quorum, "Cluster", Ready)

    def members(objects: Objects, **metadata: Any) -> list[Object]:
        return [_machine(objects, f"m-{number}", f"control-plane-{number}", **metadata) for number in range(3)]

    async def whole() -> None:
        made = [f"rack-control-plane-{number}-{what}" for number in range(3) for what in ("server", "installation")]
        objects, steps = Objects(), Steps(FORMED, *made)
        (reconciler, claims), work = _reconciler(objects), work_of(steps)
        for number, item in enumerate(members(objects)):
            mac = work.servers[f"control-plane-{number}"].mac
            await claims.claim(mac, f"facility/{item['metadata']['name']}")
        # Two at the same moment, as of two Machines.
        answers = await asyncio.gather(
            *(_gone(reconciler, item, work) for item in members(objects)[:2]), return_exceptions=True
        )
        assert answers[0] is False and isinstance(answers[1], NotUsable)
        # It is switched off and leaves etcd, before anything of it is taken away.
        assert steps.began == ["rack-control-plane-0-departure"]
        assert "is being installed or removed" in str(answers[1])
        # What was let go goes on, whatever comes after.
        first, *others = members(objects, deletionTimestamp="now")
        assert not await _gone(reconciler, first, work)
        for item in others:
            with pytest.raises(NotUsable, match="its machine is being deleted"):
                await _gone(reconciler, item, work)
        assert steps.began[1:] == made[:2]
        # Of several that are deleted before any of them goes, the one that was deleted first goes first.
        objects, steps = Objects(), Steps(FORMED, *made)
        (reconciler, claims), work = _reconciler(objects), work_of(steps)
        zero, one, two = members(objects)
        for number, item in enumerate((zero, one, two)):
            await claims.claim(work.servers[f"control-plane-{number}"].mac, f"facility/{item['metadata']['name']}")
        two["metadata"]["deletionTimestamp"] = "2026-11-27T19:00:00Z"
        one["metadata"]["deletionTimestamp"] = "2026-11-27T19:00:01Z"
        with pytest.raises(NotUsable, match=r"control-plane-2\S* \(its machine is being deleted"):
            await _gone(reconciler, one, work)
        assert not await _gone(reconciler, two, work)
        assert steps.began == ["rack-control-plane-2-departure"]
        with pytest.raises(NotUsable, match=r"control-plane-2\S* \(its machine is being deleted"):
            await _gone(reconciler, one, work)
        # One whose node cannot be drained yet was deleted before both, and does not hold up who is drained.
        objects, steps = Objects(), Steps(FORMED, *made)
        (reconciler, claims), work = _reconciler(objects), work_of(steps)
        zero, one, two = members(objects)
        await claims.claim(work.servers["control-plane-2"].mac, f"facility/{two['metadata']['name']}")
        zero["metadata"]["ownerReferences"] = [{"kind": "Machine", "name": "zero"}]
        deleted = {"name": "zero", "labels": {CLUSTER_LABEL: "rack"}, "deletionTimestamp": "2026-11-27T18:00:00Z"}
        objects.there["Machine", "zero"] = {"metadata": deleted}
        two["metadata"]["deletionTimestamp"] = "2026-11-27T19:00:00Z"
        assert not await _gone(reconciler, two, work)
        assert steps.began == ["rack-control-plane-2-departure"]

    asyncio.run(whole())


def test_a_stream_that_cannot_be_had_is_told_when_a_cluster_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    def connected(settings: Any) -> None:
        assert threading.current_thread() is not threading.main_thread()  # it waits up to 20 s for an answer
        raise StreamError("https://mirror.example.com/stream.json: no answer")

    monkeypatch.setattr("metal_ipi.cluster_api.settings.connected", connected)

    async def whole() -> None:
        objects, steps = Objects(), Steps("rack-worker-4-server")
        work = work_of(steps)
        work.cluster["metadata"]["deletionTimestamp"] = "now"
        objects.there["Cluster", "rack"] = {**_cluster(), "metadata": work.cluster["metadata"]}
        metadata = {"name": "rack", "namespace": "facility", "labels": {CLUSTER_LABEL: "rack"}}
        objects.there["MetalIpiCluster", "rack"] = {"metadata": metadata}
        assert not await FacilityReconciler(_hub(objects, work)).gone("facility", "rack")
        (said,) = objects.there["MetalIpiCluster", "rack"]["status"]["conditions"]
        assert "mirror.example.com/stream.json: no answer" in said["message"] and not steps.began

    asyncio.run(whole())


def test_a_cluster_is_called_paused_once_nothing_is_done_for_it() -> None:
    class Busy(Steps):
        async def stop(self, mine: Any = None) -> None:
            self.began.append("stop")

        def running(self, mine: Any) -> dict[str, str]:
            return {"rack-worker-4-server": ""} if self.began == ["stop"] and mine("rack-worker-4-server") else {}

    async def whole() -> None:
        objects, steps = Objects(), Busy()
        hub = _hub(objects, work_of(steps))
        hub.clusters.engines["rack"] = cast(Any, steps)
        cluster = _cluster()
        objects.there["Cluster", "rack"] = {**cluster, "spec": {**cluster["spec"], "paused": True}}
        metadata = {"name": "rack", "namespace": "facility", "uid": "rack", "labels": {CLUSTER_LABEL: "rack"}}
        objects.there["MetalIpiCluster", "rack"] = {"metadata": metadata}
        assert await FacilityReconciler(hub).reconcile("facility", "rack") == SOON
        assert "status" not in objects.there["MetalIpiCluster", "rack"]
        await FacilityReconciler(hub).reconcile("facility", "rack")
        (said,) = objects.there["MetalIpiCluster", "rack"]["status"]["conditions"]
        assert (said["type"], said["status"]) == ("Paused", "True") and steps.began == ["stop", "stop"]

    asyncio.run(whole())


def _hub(objects: Objects, work: Work) -> Hub:
    """One whose only cluster is this."""

    class One(Clusters):
        async def open(self, cluster: Object, reader: Reader) -> Work:
            return work

    return hub_of(objects, One(cast(Api, objects)))


def test_who_gets_no_answer_leads_no_longer_than_its_lease_says() -> None:
    class Silent(Objects):
        async def get(self, kind: Resource, namespace: str, name: str) -> Object | None:
            await asyncio.sleep(60)

    async def whole() -> None:
        await asyncio.wait_for(Leader(cast(Api, Silent()), "own", seconds=0.3).hold(), 10)

    asyncio.run(whole())


def test_a_server_that_is_in_use_stays_in_the_settings() -> None:
    async def whole() -> None:
        objects = Objects()
        api, tree = cast(Api, objects), rack()
        clusters = Clusters(
            api, engines={"rack": cast(Any, Steps("rack-worker-4-server", "rack-worker-0-installation"))}
        )
        metadata = {"name": "rack", "namespace": "facility", "uid": "rack"}
        objects.there["MetalIpiCluster", "rack"] = {"metadata": metadata, "spec": {"settings": tree}}
        work = await clusters.open(_cluster(), clusters.api)
        # One that no server has gives back what it had claimed all the same.
        claims = Claims(api, "own")
        await claims.claim(work.servers["worker-4"].mac, "facility/killed")
        killed: Object = {"metadata": {"name": "killed"}, "spec": {}}
        assert await _gone(MachineReconciler(hub_of(objects, clusters)), killed, work)
        assert await claims.holder(work.servers["worker-4"].mac) is None
        left = [each for each in tree["platform"]["servers"] if each["name"] != "worker-4"]
        spec = {"settings": {**tree, "platform": {**tree["platform"], "servers": left}}}
        objects.there["MetalIpiCluster", "rack"] = {"metadata": metadata, "spec": spec}
        with pytest.raises(NotUsable, match=r"does not list rack-worker-4 any more"):
            await clusters.open(_cluster(), clusters.api)

    asyncio.run(whole())
