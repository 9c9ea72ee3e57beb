"""What is added when the cluster is complete: operators and their custom resources."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from metal_ipi.components.install.manifest_rules import CLUSTER_NAMESPACES
from metal_ipi.stacks.sections.base import Section, matching, wrong
from metal_ipi.stacks.sections.devices import StableDevice
from metal_ipi.stacks.sections.forms import PathHere
from metal_ipi.stacks.sections.image_registry import ImageRegistry, ObjectName
from metal_ipi.stacks.sections.service_addresses import OPENSHIFT_CATALOG

WAIT_FOR = r"condition=[A-Za-z0-9./-]+(=\w+)?|jsonpath=\{(\.[A-Za-z0-9_-]+)+\}(=.+)?"
"""A condition in the syntax of pulumi-kubernetes' annotation `pulumi.com/waitFor`; only one condition."""

_Package = Annotated[
    str,
    matching(
        r"(?=.{1,253}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?",
        "it is not a name of a package or of a catalogue",
        "copy it from `oc get packagemanifests`",
    ),
]
_Channel = Annotated[
    str,
    matching(
        r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,98}[A-Za-z0-9])?",
        "it is not a name of a channel",
        "copy it from `oc get packagemanifest <package> -o yaml`, e.g. stable-4.19",
    ),
]
_Csv = Annotated[
    str,
    matching(
        r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9+]*[a-z0-9])?)+",
        "it is not a name of a ClusterServiceVersion",
        "copy it from the package's channel, e.g. lvms-operator.v4.19.0",
    ),
]
_WaitFor = Annotated[
    str,
    matching(
        WAIT_FOR, "it is not a condition to wait for", "give condition=<type> or jsonpath={.status.<field>}=<value>"
    ),
]
Role = Literal["control-plane", "worker"]


class OperatorObject(Section):
    """Custom resources for an operator: those in a file, or one that is written here."""

    file: PathHere | None = Field(default=None, description="a YAML file with one or more, relative to the project")
    manifest: dict[str, Any] | None = Field(
        default=None, description="a single object, as it would be in a file; no secrets"
    )
    wait_for: _WaitFor | None = Field(
        default=None,
        description=(
            "what to wait for after each object: condition=<type>, or jsonpath={.status.<field>}=<value>; not "
            "set: nothing"
        ),
    )

    @model_validator(mode="after")
    def _one(self) -> OperatorObject:
        if (self.file is None) == (self.manifest is None):
            raise wrong("exactly one of file and manifest must be set", "set file, or manifest")
        return self


class Operator(Section):
    """An operator of the Operator Lifecycle Manager, and its custom resources."""

    package: _Package = Field(description="its package in the catalogue, e.g. kubernetes-nmstate-operator")
    namespace: ObjectName = Field(description="the namespace that is created for it, and only for it")
    channel: _Channel | None = Field(default=None, description="the update channel; not set: the package's default")
    catalog: _Package | None = Field(default=None, description="the catalogue; not set: as in dayTwo.catalog")
    catalog_namespace: ObjectName = Field(default="openshift-marketplace", description="the catalogue's namespace")
    starting_csv: _Csv | None = Field(
        default=None, description="the name of the first version to install; not set: the channel's latest"
    )
    approval: Literal["automatic", "manual"] = Field(
        default="automatic", description="manual: somebody approves each installation and each update; `up` waits"
    )
    privileged: bool = Field(
        default=False, description="true: pods of the namespace may use the host's network and files"
    )
    watches: Literal["own-namespace", "all-namespaces"] = Field(
        default="own-namespace", description="the namespaces that it watches; its version must support that"
    )
    objects: tuple[OperatorObject, ...] = Field(
        default=(), strict=False, max_length=50, description="its objects, in the order in which they are created"
    )

    @model_validator(mode="after")
    def _own_namespace(self) -> Operator:
        if self.namespace in CLUSTER_NAMESPACES or self.namespace.startswith("kube-"):
            raise wrong(
                "the namespace belongs to the cluster: it would not be deleted, and the operator would stay in it",
                "give it one of its own, e.g. the one that its documentation names",
                at="namespace",
            )
        return self


class ThinPool(Section):
    """How much of the disks is used for volumes, and how far volumes may be overprovisioned."""

    size_percent: int = Field(default=90, ge=10, le=90, description="percent of the disks that is used for volumes")
    overprovision_ratio: int = Field(
        default=10, ge=2, le=100, description="how many times the available space may be promised to volumes"
    )


class LvmStorage(Section):
    """LVM Storage: volumes on the nodes' own disks, and a storage class for them."""

    channel: _Channel | None = Field(default=None, description="not set: stable-<major.minor> of openshiftVersion")
    device_class: Annotated[ObjectName, Field(max_length=58)] = Field(
        default="vg1", description="its name; the storage class is called lvms-<name>"
    )
    disks: tuple[StableDevice, ...] = Field(
        strict=False,
        max_length=50,
        description="stable paths of the disks, at least one, which must exist on each of these nodes",
    )
    role: Role | None = Field(default=None, description="the nodes that have them; not set: all")
    wipe: bool = Field(
        default=False, description="true: the content of these disks is destroyed; false: they must be empty"
    )
    filesystem: Literal["xfs", "ext4"] = Field(default="xfs", description="the file system of volumes: xfs or ext4")
    thin_pool: ThinPool = Field(default_factory=ThinPool, description="how much of the disks is used")

    @model_validator(mode="after")
    def _some(self) -> LvmStorage:
        if not self.disks:
            raise wrong("it lists no disk", "list at least one: else LVM Storage uses all empty ones", at="disks")
        if len(set(self.disks)) < len(self.disks):
            raise wrong("a disk is listed twice", "list it once", at="disks")
        return self

    @property
    def storage_class(self) -> str:
        """The name of its storage class."""
        return f"lvms-{self.device_class}"


class NetworkPolicy(Section):
    """A network configuration (NMState) for running nodes."""

    name: ObjectName = Field(description="its name")
    role: Role | None = Field(default=None, description="the nodes that it is for; not set: all")
    max_unavailable: int = Field(default=1, ge=1, le=1000, description="how many nodes are changed at the same time")
    desired_state: dict[str, Any] = Field(description="the desired network state; the operator checks it")

    @model_validator(mode="after")
    def _state(self) -> NetworkPolicy:
        known = ("dns-resolver", "interfaces", "ovn", "ovs-db", "route-rules", "routes")
        if unknown := [name for name in self.desired_state if name not in known]:
            raise wrong(
                f"{unknown[0]} is not a part of NMState's desired state", f"give {', '.join(known)}", at="desiredState"
            )
        if not self.desired_state:
            raise wrong("it is empty", "set the changes, or remove the policy", at="desiredState")
        return self


class NmState(Section):
    """The NMState operator, which changes networks of running nodes."""

    channel: _Channel = Field(default="stable", description="the update channel")
    policies: tuple[NetworkPolicy, ...] = Field(
        default=(), strict=False, max_length=100, description="the changes, and their nodes"
    )

    @model_validator(mode="after")
    def _distinct(self) -> NmState:
        names = [policy.name for policy in self.policies]
        if len(set(names)) < len(names):
            raise wrong("two policies have the same name", "give each a name of its own", at="policies")
        return self


class NodeHealthCheck(Section):
    """Nodes that no longer respond are restarted over their BMCs, and their pods start elsewhere."""

    channel: _Channel = Field(default="stable", description="the update channel of both operators")
    role: Role = Field(default="worker", description="the role of the nodes that are watched")
    unhealthy_after: int = Field(
        default=300, ge=30, le=24 * 3600, description="seconds for which a node must be NotReady or Unknown"
    )
    min_healthy_percent: int = Field(
        default=51,
        ge=1,
        le=100,
        description="percent of these nodes that must be healthy; otherwise nothing is restarted",
    )
    verify_certificates: bool = Field(
        default=True,
        description=(
            "false: the fence agent accepts any certificate of a BMC. true: only certificates of public "
            "authorities, as it knows no others"
        ),
    )


class DayTwo(Section):
    """What is added when the cluster is complete."""

    catalog: _Package = Field(
        default=OPENSHIFT_CATALOG,
        description="the catalogue of operators: redhat-operators on OpenShift, community-operators on OKD",
    )
    lvm_storage: LvmStorage | None = Field(default=None, description="volumes of the nodes' own disks")
    nm_state: NmState | None = Field(default=None, description="changes to the networks of running nodes")
    node_health_check: NodeHealthCheck | None = Field(default=None, description="automatic restart of nodes that hang")
    operators: tuple[Operator, ...] = Field(default=(), strict=False, max_length=50, description="any other operators")
    registry: ImageRegistry | None = Field(
        default=None, description="the cluster's own image registry; not set: it is not changed"
    )
