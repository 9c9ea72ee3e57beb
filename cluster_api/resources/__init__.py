"""The kinds of the providers: one declaration gives the CustomResourceDefinition, the checks and the page's table."""

from __future__ import annotations

from dataclasses import dataclass, field

from metal_ipi.cluster_api.api import Resource
from metal_ipi.cluster_api.resources.base import Part
from metal_ipi.cluster_api.resources.bootstrap import ConfigSpec, ConfigStatus
from metal_ipi.cluster_api.resources.control_plane import ControlPlaneSpec, ControlPlaneStatus
from metal_ipi.cluster_api.resources.infrastructure import ClusterSpec, ClusterStatus, MachineSpec, MachineStatus
from metal_ipi.cluster_api.resources.remediation import RemediationSpec, RemediationStatus

VERSION = "v1alpha1"
MOVE_LABEL = "clusterctl.cluster.x-k8s.io/move"
"""The label that makes `clusterctl move` move objects that no object of a cluster owns."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind, and its template."""

    provider: str
    """clusterctl's name of the provider."""
    resource: Resource
    spec: type[Part]
    status: type[Part]
    replicas: bool = False
    """Whether it has the subresource scale."""
    columns: tuple[tuple[str, str], ...] = field(default=())
    """Names and paths of what `kubectl get` shows."""

    @property
    def template(self) -> Resource:
        """Its template's kind."""
        own = self.resource
        return Resource(
            group=own.group, version=own.version, kind=f"{own.kind}Template", plural=f"{own.kind.lower()}templates"
        )


def _resource(group: str, kind: str) -> Resource:
    return Resource(group=f"{group}.cluster.x-k8s.io", version=VERSION, kind=kind, plural=f"{kind.lower()}s")


_READY = ("Ready", '.status.conditions[?(@.type=="Ready")].status')
_INSTALLING = ("Installing", '.status.conditions[?(@.type=="Installing")].reason')
INFRASTRUCTURE, BOOTSTRAP, CONTROL_PLANE = (
    "infrastructure-metal-ipi",
    "bootstrap-metal-ipi",
    "control-plane-metal-ipi",
)
METAL_IPI_CLUSTER = Kind(
    provider=INFRASTRUCTURE,
    resource=_resource("infrastructure", "MetalIpiCluster"),
    spec=ClusterSpec,
    status=ClusterStatus,
    columns=(("Endpoint", ".spec.controlPlaneEndpoint.host"), _INSTALLING, _READY),
)
METAL_IPI_MACHINE = Kind(
    provider=INFRASTRUCTURE,
    resource=_resource("infrastructure", "MetalIpiMachine"),
    spec=MachineSpec,
    status=MachineStatus,
    columns=(("Server", ".spec.server"), ("ProviderID", ".spec.providerID"), _READY),
)
METAL_IPI_REMEDIATION = Kind(
    provider=INFRASTRUCTURE,
    resource=_resource("infrastructure", "MetalIpiRemediation"),
    spec=RemediationSpec,
    status=RemediationStatus,
    columns=(("PowerCycles", ".status.powerCycles"), _READY),
)
OPENSHIFT_CONFIG = Kind(
    provider=BOOTSTRAP,
    resource=_resource("bootstrap", "OpenShiftConfig"),
    spec=ConfigSpec,
    status=ConfigStatus,
    columns=(("Secret", ".status.dataSecretName"), _READY),
)
OPENSHIFT_CONTROL_PLANE = Kind(
    provider=CONTROL_PLANE,
    resource=_resource("controlplane", "OpenShiftControlPlane"),
    spec=ControlPlaneSpec,
    status=ControlPlaneStatus,
    replicas=True,
    columns=(
        ("Initialized", ".status.initialization.controlPlaneInitialized"),
        ("Available", '.status.conditions[?(@.type=="Available")].status'),
        ("Version", ".spec.version"),
    ),
)
KINDS = (METAL_IPI_CLUSTER, METAL_IPI_MACHINE, METAL_IPI_REMEDIATION, OPENSHIFT_CONFIG, OPENSHIFT_CONTROL_PLANE)
