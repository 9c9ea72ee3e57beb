"""One cluster, from its objects: settings, program and engine, which all of its objects share."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from metal_ipi.cluster_api import domains, manifests, settings
from metal_ipi.cluster_api.api import CLUSTER, SECRET, Api, Object, labels_of, owner_of, status_of, uid_of
from metal_ipi.cluster_api.conditions import PREFLIGHT_PASSED
from metal_ipi.cluster_api.engine.engine import Engine
from metal_ipi.cluster_api.engine.plan import Plan
from metal_ipi.cluster_api.engine.state import State, name_of
from metal_ipi.cluster_api.manifests import Manifests, ManifestsRefused
from metal_ipi.cluster_api.reads import Reader
from metal_ipi.cluster_api.resources import METAL_IPI_CLUSTER, METAL_IPI_MACHINE, OPENSHIFT_CONTROL_PLANE
from metal_ipi.cluster_api.store import CLUSTER_LABEL, SecretStore
from metal_ipi.components.install.manifests import ManifestsError
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.configuration import Settings as Connections
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.listed.settings import ListedServers
from metal_ipi.stacks.platforms.listed.settings import Server as ListedServer
from metal_ipi.stacks.problems import SettingsError
from metal_ipi.stacks.settings import Settings

PAUSED = "cluster.x-k8s.io/paused"
KEYS, ASSETS, ANSWERS = "keys", "install-assets-create", "api-answers"
FORMED, COMPLETE = "bootstrap-complete", "install-complete"
"""Resources of the program that show the progress of a cluster."""
_OF_SERVER = ("-server", "-installation")
"""Suffixes after the host name, in the names of resources of a server."""
_RECENT = 1.0
"""Seconds for which a cluster that was opened is the same for all of its objects, if nothing changes."""
_OF_CLUSTER = frozenset({KEYS, "preflight", "mirror"})


class NotUsable(Exception):
    """The objects of a cluster cannot be used; the message says what to do, `reason` is the reason for a condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Work:
    """The data of one cluster, for its reconcilers."""

    cluster: Object
    """The Cluster."""
    facility: Object
    """The MetalIpiCluster."""
    engine: Engine
    store: SecretStore
    tree: settings.Tree
    """The settings with their secrets, all listed servers in them; secret."""
    settings: Settings
    manifests: Manifests = field(default_factory=Manifests)
    """The user's, which the settings name."""

    @property
    def name(self) -> str:
        """The Cluster's name."""
        return str(self.cluster["metadata"]["name"])

    @cached_property
    def nodes(self) -> Nodes:
        """All machines that the settings list."""
        return Nodes.of(self.settings)

    @property
    def provisioned(self) -> bool:
        """Whether the MetalIpiCluster is provisioned."""
        status: Mapping[str, Any] = self.facility.get("status") or {}
        return bool((status.get("initialization") or {}).get("provisioned"))

    @property
    def checked(self) -> bool:
        """Whether the MetalIpiCluster has its keys, and its preflight has passed once."""
        return self.provisioned or status_of(self.facility, PREFLIGHT_PASSED) == ("True",)

    @cached_property
    def servers(self) -> dict[str, ListedServer]:
        """The listed servers, by the names of their machines. Raises NotUsable on platforms that list none."""
        return servers_of(self.settings)

    async def connections(self) -> Connections:
        """The provider's configuration. Raises StreamError if the stream metadata cannot be read."""
        return await asyncio.to_thread(settings.connected, self.settings)

    def node(self, server: str) -> Node:
        """The node that a listed server becomes."""
        return next(node for node in self.nodes.all if node.name == server)

    def of_cluster(self, name: str) -> bool:
        """Whether a resource is the MetalIpiCluster's."""
        return name in _OF_CLUSTER

    def of_machine(self, name: str) -> bool:
        """Whether a resource is a MetalIpiMachine's."""
        return any(is_of(node, name) for node in self.nodes.all if node.role != "bootstrap")

    def of_control_plane(self, name: str) -> bool:
        """Whether a resource is the OpenShiftControlPlane's."""
        return not self.of_cluster(name) and not self.of_machine(name)

    async def plan(self, reader: Reader) -> Plan:
        """The plan of the cluster. Until the cluster is formed, all listed servers belong to it, because the installer
        needs the number of workers. From then on its workers are the servers of MetalIpiMachines, and servers that are
        installed but have no MetalIpiMachine yet, because the cluster was made elsewhere."""
        tree, state = self.tree, await self.engine.state()
        if state.named(FORMED) is not None:
            machines = await reader.list(METAL_IPI_MACHINE.resource, self.namespace, f"{CLUSTER_LABEL}={self.name}")
            going = {str(each["spec"].get("server")) for each in machines if leaving(each)}
            installed = {node.name for node in self.nodes.workers if state.named(made(node)[1]) is not None}
            taken = {str(each["spec"].get("server")) for each in machines if not leaving(each)} | installed - going
            tree = settings.only(tree, frozenset(taken))
        try:
            return await self.engine.look(settings.declaration(tree))
        except ManifestsError as error:
            raise NotUsable("ManifestsRefused", self.manifests.with_secret_names(str(error))) from None

    @property
    def namespace(self) -> str:
        """The namespace of all of its objects."""
        return str(self.cluster["metadata"]["namespace"])


@dataclass(frozen=True, kw_only=True)
class _Opened:
    version: str
    """The Cluster's."""
    until: float
    """On the monotonic clock."""
    work: asyncio.Future[Work]


@dataclass
class Clusters:
    """All clusters of the hub that this process works for."""

    api: Api
    engines: dict[str, Engine] = field(default_factory=dict[str, Engine])
    """By the MetalIpiCluster's uid."""
    ring: Callable[[str, str], None] = lambda cluster, step: None
    """Called when a step of a cluster, `namespace/name`, has ended; with its name."""
    _settings: dict[str, tuple[Any, tuple[settings.Tree, Settings]]] = field(
        default_factory=dict[str, tuple[Any, tuple[settings.Tree, Settings]]]
    )
    """What was read last, by the MetalIpiCluster's uid: of what, and the settings."""
    _opened: dict[str, _Opened] = field(default_factory=dict[str, _Opened])
    """By `namespace/name` of the Cluster."""

    async def cluster_of(self, item: Object, reader: Reader) -> Object | None:
        """The Cluster that an object is labelled with, or owned by; None where there is none (yet)."""
        name = cluster_name(item)
        return await reader.get(CLUSTER, item["metadata"]["namespace"], name) if name else None

    async def recent(self, cluster: Object, reader: Reader) -> Work:
        """As `open`; what many objects of a cluster ask for at once is opened once."""
        where = f"{cluster['metadata']['namespace']}/{cluster['metadata']['name']}"
        found, now = self._opened.get(where), time.monotonic()
        if found is None or found.until < now or found.version != cluster["metadata"]["resourceVersion"]:
            found = self._opened[where] = _Opened(
                version=cluster["metadata"]["resourceVersion"],
                until=now + _RECENT,
                work=asyncio.ensure_future(self.open(cluster, reader)),
            )
        return await asyncio.shield(found.work)

    def forget(self, cluster: str) -> None:
        """Something of a cluster, `namespace/name`, has changed: `recent` opens it again."""
        self._opened.pop(cluster, None)

    async def open(self, cluster: Object, reader: Reader) -> Work:
        """The data of a cluster. Raises NotUsable, StateError, ApiError."""
        namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
        reference: Mapping[str, Any] = (cluster.get("spec") or {}).get("infrastructureRef") or {}
        if reference.get("kind") != METAL_IPI_CLUSTER.resource.kind:
            raise NotUsable("NoFacility", f"Cluster {name}: spec.infrastructureRef names no MetalIpiCluster")
        facility = await reader.get(METAL_IPI_CLUSTER.resource, namespace, reference["name"])
        if facility is None:
            raise NotUsable("NoFacility", f"there is no MetalIpiCluster {namespace}/{reference['name']}")
        secrets = await secrets_of(reader, facility)
        store = SecretStore(self.api, facility, name)
        engine = self._engine(facility, store, secrets, f"{namespace}/{name}")
        state = await engine.state()
        given = await self._manifests(cluster, facility, state, reader)
        try:
            tree, valid = self._read(facility, secrets, given)
        except SettingsError as error:
            raise NotUsable("SettingsRefused", problems_text(error)) from None
        refuse_another_name(valid, cluster)
        refuse_without_servers(state, valid)
        return Work(
            cluster=cluster,
            facility=facility,
            engine=engine,
            store=store,
            tree=tree,
            settings=valid,
            manifests=given,
        )

    def _read(self, facility: Object, secrets: Mapping[str, str], given: Manifests) -> tuple[settings.Tree, Settings]:
        """As `read`; what was read last of a cluster is read once, because all of its objects ask."""
        said, uid = (facility["spec"], secrets, given), uid_of(facility)
        kept = self._settings.get(uid)
        if kept is None or kept[0] != said:
            kept = self._settings[uid] = (said, read(*said))
        return kept[1]

    async def _manifests(self, cluster: Object, facility: Object, state: State, reader: Reader) -> Manifests:
        """The user's manifests, which the control plane names; for a formed cluster those with which it was
        installed."""
        if state.named(FORMED) is not None:
            return manifests.taken_in(state.named(ASSETS))
        reference: Mapping[str, Any] = (cluster.get("spec") or {}).get("controlPlaneRef") or {}
        kind, namespace = OPENSHIFT_CONTROL_PLANE.resource, cluster["metadata"]["namespace"]
        if reference.get("kind") != kind.kind:
            return Manifests()
        found = await reader.get(kind, namespace, reference["name"])
        try:
            return Manifests() if found is None else await manifests.provided(self.api, found, uid_of(facility))
        except ManifestsRefused as error:
            raise NotUsable("ManifestsRefused", str(error)) from None

    async def engine_of(self, cluster: Object) -> Engine | None:
        """The engine of a cluster; None if this process has not worked for the cluster yet. Raises ApiError."""
        reference: Mapping[str, Any] = (cluster.get("spec") or {}).get("infrastructureRef") or {}
        if not reference.get("name"):
            return None
        found = await self.api.get(METAL_IPI_CLUSTER.resource, cluster["metadata"]["namespace"], reference["name"])
        return None if found is None else self.engines.get(uid_of(found))

    async def close(self, facility: Object) -> None:
        """Stops and forgets the engine of a deleted cluster, and its manifests."""
        found = self.engines.pop(uid_of(facility), None)
        self._settings.pop(uid_of(facility), None)
        await asyncio.to_thread(manifests.forget, uid_of(facility))
        if found is not None:
            await found.stop()

    def _engine(self, facility: Object, store: SecretStore, secrets: Mapping[str, str], cluster: str) -> Engine:
        engine = self.engines.setdefault(uid_of(facility), Engine(store, partial(self.ring, cluster)))
        engine.learn(secrets.values())
        return engine


def cluster_name(item: Mapping[str, Any]) -> str | None:
    """The name of the Cluster that an object is labelled with, or owned by."""
    return labels_of(item).get(CLUSTER_LABEL) or owner_of(item, CLUSTER.kind)


async def secrets_of(reader: Reader, facility: Object) -> dict[str, str]:
    """The secret settings of a MetalIpiCluster, by path. Raises NotUsable where its Secret is not there, ApiError."""
    namespace, reference = facility["metadata"]["namespace"], facility["spec"].get("secretsRef")
    if not reference:
        return {}
    found = await reader.get(SECRET, namespace, reference["name"])
    if found is None:
        raise NotUsable("NoSecrets", f"there is no Secret {namespace}/{reference['name']}, which spec.secretsRef names")
    return {key: base64.b64decode(value).decode() for key, value in (found.get("data") or {}).items()}


def read(
    spec: Mapping[str, Any], secrets: Mapping[str, str], given: Manifests | None = None
) -> tuple[settings.Tree, Settings]:
    """The settings of a MetalIpiCluster, from its `spec`: with their secrets and the folders of manifests, and checked.
    Raises SettingsError, NotUsable."""
    tree = (given or Manifests()).added(settings.merged(spec.get("settings") or {}, secrets))
    valid = settings.validated(tree)
    if valid.rehearsal:
        raise NotUsable("SettingsRefused", "settings.rehearsal is for previews only: remove it")
    return tree, valid


def servers_of(valid: Settings) -> dict[str, ListedServer]:
    """The listed servers, by the names of their machines. Raises NotUsable on platforms that list none."""
    platform: Any = valid.platform
    if not isinstance(platform, ListedServers):
        raise NotUsable(
            "PlatformRefused",
            f"settings.platform.type {platform.type} orders machines through plug-ins of Pulumi, which the Cluster "
            "API providers do not use: use redfish or ironic, or `up` without a hub",
        )
    return {server.name: server for server in platform.servers}


def refuse_another_name(valid: Settings, cluster: Object) -> None:
    """Raises NotUsable for settings of another cluster than the Cluster."""
    name = cluster["metadata"]["name"]
    if valid.cluster_name != name:
        raise NotUsable(
            "SettingsRefused",
            f"settings.clusterName is {valid.cluster_name}, and the Cluster is {name}: they must be the same",
        )


def refuse_domains(facility: Object, listed: Mapping[str, ListedServer]) -> None:
    """Raises NotUsable for failure domains that are wrong. `listed` are the listed servers, by name."""
    if wrong := domains.problems(facility, listed):
        raise NotUsable("FailureDomainsRefused", "\n".join(wrong))


def refuse_without_servers(state: State, valid: Settings) -> None:
    """Raises NotUsable if the settings no longer list a server that is in use: its resources could not be deleted, and
    its owner would not be known."""
    listed = {node.hostname for node in Nodes.of(valid).all}
    used = {name_of(urn).rpartition("-")[0] for urn in state.entries if name_of(urn).endswith(_OF_SERVER)}
    if gone := sorted(used - listed):
        raise NotUsable(
            "SettingsRefused",
            f"settings.platform.servers does not list {', '.join(gone)} any more, but the install state has it: list "
            "it again, delete its Machine, and remove it once the Machine is gone",
        )


def made(node: Node) -> tuple[str, str]:
    """The names of the resources of a machine: its claim on a server, and its installation."""
    server, installation = _OF_SERVER
    return f"{node.hostname}{server}", f"{node.hostname}{installation}"


def is_of(node: Node, name: str) -> bool:
    """Whether a resource is of one machine: `<host name>-server`, `<host name>-installation`."""
    return name.rpartition("-")[0] == node.hostname or name == node.hostname


def leaving(item: Object) -> bool:
    """Whether an object is being deleted."""
    return bool(item["metadata"].get("deletionTimestamp"))


def is_paused(item: Object, cluster: Object | None) -> bool:
    """Whether an object is paused, so that nothing is done about it (contract: pausing)."""
    annotated = PAUSED in (item["metadata"].get("annotations") or {})
    return annotated or bool(((cluster or {}).get("spec") or {}).get("paused"))


def problems_text(error: SettingsError) -> str:
    """The problems of settings, as the message of a condition."""
    return "\n".join(f"{each.path} = {each.value}: {each.why}; {each.remedy}" for each in error.problems)
