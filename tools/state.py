"""The engine's state as data: its machines, and what an interrupted run left pending. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, cast

Tree = dict[str, Any]

STACK_TYPE = "pulumi:pulumi:Stack"
CLUSTER_KEYS = "metal-ipi:index:ClusterKeys"
PREFLIGHT = "metal-ipi:index:Preflight"
EPHEMERAL = "metal-ipi:index:EphemeralMachine"
REMOVAL = "metal-ipi:index:Removal"
INSTALLATION = "metal-ipi:index:Installation"
REDFISH_SERVER, IRONIC_SERVER = "metal-ipi:index:RedfishMachine", "metal-ipi:index:IronicMachine"
UNMARKED = frozenset({"metal-ipi:index:DnsRecords", "metal-ipi:index:Artifacts", INSTALLATION, IRONIC_SERVER})
"""Types whose real objects have no tag to find them by, and are identified by their inputs: records in a zone, uploaded
files, claims."""
SERVERS = (REDFISH_SERVER, IRONIC_SERVER)
"""Types of servers that are claimed, not ordered."""
DEVICE = "equinix-metal:index/device:Device"
SPOT_REQUEST = "equinix-metal:index/spotMarketRequest:SpotMarketRequest"
PROJECT = "equinix-metal:index/project:Project"
_ENDINGS = {EPHEMERAL: "", DEVICE: "-device", SPOT_REQUEST: "-request", **dict.fromkeys(SERVERS, "-server")}
"""Type of a machine's resource to the suffix of its name after the machine's name."""
_CLUSTER_TAG = "metal-ipi:cluster="


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """An exported state."""

    document: Tree
    """As printed by `pulumi stack export`; secrets are encrypted."""

    @property
    def resources(self) -> list[Tree]:
        """All resources, not only machines."""
        return cast("list[Tree]", self._deployment.get("resources") or [])

    @property
    def pending(self) -> list[Tree]:
        """Operations that were running when the engine died."""
        return cast("list[Tree]", self._deployment.get("pending_operations") or [])

    @property
    def _deployment(self) -> Tree:
        return self.document.get("deployment") or {}

    def ids(self) -> set[str]:
        """All ids of resources and of their machines."""
        found: set[str] = set()
        for resource in self.resources:
            outputs = cast(Tree, resource.get("outputs") or {})
            found |= {value for value in (resource.get("id"), outputs.get("machineId")) if isinstance(value, str)}
        return found

    def has(self, type_: str) -> bool:
        """Whether the state has a resource of this type."""
        return any(resource.get("type") == type_ for resource in self.resources)

    def pending_creates(self) -> Iterator[tuple[str, str]]:
        """Type and name of each resource whose creation was interrupted."""
        for operation in self.pending:
            if operation.get("type") == "creating":
                yield describe(cast(Tree, operation.get("resource") or {}))

    def project_ids(self) -> set[str]:
        """Ids of the Metal projects that the stack created."""
        return {str(r["id"]) for r in self.resources if r.get("type") == PROJECT and r.get("id")}

    def pending_projects(self) -> frozenset[str]:
        """Names of projects whose creation was interrupted. Projects have no tags, so they are found by name."""
        pending = [cast(Tree, item["resource"]) for item in self.pending if item.get("type") == "creating"]
        return frozenset(str((r.get("inputs") or {}).get("name")) for r in pending if r.get("type") == PROJECT)

    def cluster(self) -> str | None:
        """The domain of the cluster whose machines are in the state, from their tags or installations; else None."""
        for resource in self.resources:
            if resource.get("type") == INSTALLATION:
                return str((resource.get("inputs") or {})["cluster"])
            if resource.get("type") in (DEVICE, EPHEMERAL):
                for tag in (resource.get("inputs") or {}).get("tags") or ():
                    if str(tag).startswith(_CLUSTER_TAG):
                        return str(tag).removeprefix(_CLUSTER_TAG)
        return None

    def run(self) -> str | None:
        """The id of this installation (run), which is in its tags; None if it does not exist yet."""
        return next((str(r["id"]) for r in self.resources if r.get("type") == CLUSTER_KEYS and r.get("id")), None)

    def machine(self, hostname: str) -> str | None:
        """The URN of the machine with this name (`lab-worker-0`); None if the state has none."""
        for resource in self.resources:
            type_, name = describe(resource)
            if type_ in _ENDINGS and name == f"{hostname}{_ENDINGS[type_]}":
                return str(resource["urn"])
        return None

    def machines(self) -> list[str]:
        """The names of all machines in the state."""
        found = [describe(resource) for resource in self.resources]
        return sorted(name.removesuffix(_ENDINGS[type_]) for type_, name in found if type_ in _ENDINGS)

    def to_install(self, replaced: Collection[str]) -> frozenset[str]:
        """Names of installed machines that will be ordered: replaced or missing ones. Own servers are never ordered."""
        hostnames = {str(r["inputs"]["hostname"]) for r in self.resources if r.get("type") == INSTALLATION}
        return frozenset(name for name in hostnames if name in replaced or self.machine(name) is None)

    def without_installers(self, hostnames: Collection[str]) -> Tree:
        """The document without the hashes of files that install these machines, so that the files are uploaded
        again."""
        gone: defaultdict[str, set[str]] = defaultdict(set)
        for resource in self.resources:
            if resource.get("type") == INSTALLATION and resource["inputs"]["hostname"] in hostnames:
                files = {name for place in resource["inputs"]["artifacts"] for name in place["files"]}
                for urn in resource["propertyDependencies"]["artifacts"]:
                    gone[urn] |= files
        resources = [
            {**resource, "outputs": _without_hashes(resource["outputs"], gone[resource["urn"]])}
            if resource["urn"] in gone
            else resource
            for resource in self.resources
        ]
        return {**self.document, "deployment": {**self._deployment, "resources": resources}}

    def without_pending(self) -> Tree:
        """The document without pending operations, for an import: the next `up` does them again."""
        deployment = {key: value for key, value in self._deployment.items() if key != "pending_operations"}
        return {**self.document, "deployment": deployment}

    def for_destroy(self) -> Tree:
        """The document for a `down`: also without pending operations, but with resources that may have been created and
        have no tag, so that they are deleted.

        Deleting a resource that was not created is harmless. A resource that was being updated is there twice: with its
        old inputs, and with the new ones, marked for deletion.
        """
        document = self.without_pending()
        known = {str(resource["urn"]) for resource in self.resources}
        made: list[Tree] = []
        for operation in self.pending:
            resource = cast(Tree, operation.get("resource") or {})
            if operation.get("type") in {"creating", "updating"} and resource.get("type") in UNMARKED:
                twin = {"delete": True} if resource["urn"] in known else {}
                inputs = resource.get("inputs") or {}
                made.append({**resource, "id": resource.get("id") or "interrupted", "outputs": inputs, **twin})
        return {**document, "deployment": {**document["deployment"], "resources": [*self.resources, *made]}}

    def protected(self) -> list[str]:
        """The names of protected resources."""
        return [urn_name(str(r.get("urn", ""))) for r in self.resources if r.get("protect")]

    def without_protection(self) -> Tree:
        """The document of a state without any protection."""
        resources = [{key: value for key, value in r.items() if key != "protect"} for r in self.resources]
        return {**self.document, "deployment": {**self._deployment, "resources": resources}}

    def left(self) -> list[tuple[str, str]]:
        """Type and name of each real resource in the state."""
        return [describe(r) for r in self.resources if r.get("custom") and not r.get("type", "").startswith("pulumi:")]


def describe(resource: Tree) -> tuple[str, str]:
    """The type and the name of a resource."""
    return str(resource.get("type", "")), urn_name(str(resource.get("urn", "")))


def is_check(type_: str, name: str) -> bool:
    """Whether a resource runs node checks. The installer's assets come from a command, too."""
    return type_ == "command:local:Command" and "-checks-" in name


def urn_name(urn: str) -> str:
    """The name in a URN."""
    return urn.rpartition("::")[2]


def _without_hashes(outputs: Tree, names: Collection[str]) -> Tree:
    """The outputs of uploaded files without the hashes of some of them."""
    return {**outputs, "hashes": {name: hash_ for name, hash_ in outputs["hashes"].items() if name not in names}}
