"""The control plane provider's kind."""

from __future__ import annotations

from pydantic import Field

from metal_ipi.cluster_api.resources.base import Metadata, Part, Reference, SecretReference, WithConditions


class Deletion(Part):
    """How machines are taken away."""

    node_drain_timeout_seconds: int | None = Field(default=None, ge=0, description="longest drain, s; 0: no limit")
    node_volume_detach_timeout_seconds: int | None = Field(
        default=None, ge=0, description="longest wait for volumes, s; 0: no limit"
    )
    node_deletion_timeout_seconds: int | None = Field(
        default=None, ge=0, description="longest wait for the Node to go, s; 0: no limit"
    )


class MachineTemplateSpec(Part):
    """The machines."""

    infrastructure_ref: Reference = Field(description="the MetalIpiMachineTemplate that they are made from")
    deletion: Deletion | None = Field(default=None, description="how they are taken away")


class MachineTemplate(Part):
    """What the machines are made from."""

    metadata: Metadata | None = Field(default=None, description="labels and annotations of the machines")
    spec: MachineTemplateSpec = Field(description="the machines")


class ControlPlaneSpec(Part):
    """The control plane."""

    replicas: int = Field(default=3, ge=1, le=5, description="how many machines: 1, 3, 4 or 5, as many as are listed")
    version: str = Field(min_length=1, max_length=256, description="the release, v and openshiftVersion, e.g. v4.19.3")
    machine_template: MachineTemplate = Field(description="what the machines are made from")
    manifest_secret_refs: tuple[SecretReference, ...] = Field(
        default=(), max_length=16, description="Secrets whose keys are files of manifests that the installer takes in"
    )


class ControlPlaneInitialized(Part):
    """What Cluster API waits for."""

    control_plane_initialized: bool = Field(default=False, description="whether the API is the control plane's own")


class ControlPlaneStatus(WithConditions):
    """What there is."""

    initialization: ControlPlaneInitialized | None = Field(default=None, description="how far it came")
    version: str | None = Field(
        default=None, min_length=1, max_length=256, description="the release it was installed with"
    )
    selector: str | None = Field(default=None, description="the labels of its machines, for the subresource scale")
    replicas: int | None = Field(default=None, description="how many machines there are")
    ready_replicas: int | None = Field(default=None, description="how many of them are Ready")
    available_replicas: int | None = Field(default=None, description="how many of them are Available")
    up_to_date_replicas: int | None = Field(default=None, description="how many are as the specification says")
    external_managed_control_plane: bool = Field(default=False, description="false: its machines have Nodes")
