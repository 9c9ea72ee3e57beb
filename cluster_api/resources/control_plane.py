"""The control plane provider's kind."""

from __future__ import annotations

from pydantic import Field

from metal_ipi.cluster_api.resources.base import Metadata, Part, Reference, SecretReference, WithConditions


class Deletion(Part):
    """How machines are deleted."""

    node_drain_timeout_seconds: int | None = Field(default=None, ge=0, description="longest drain, s; 0: no limit")
    node_volume_detach_timeout_seconds: int | None = Field(
        default=None, ge=0, description="longest wait for volumes, s; 0: no limit"
    )
    node_deletion_timeout_seconds: int | None = Field(
        default=None, ge=0, description="longest wait for the Node to go, s; 0: no limit"
    )


class MachineTemplateSpec(Part):
    """The machines."""

    infrastructure_ref: Reference = Field(description="the MetalIpiMachineTemplate of the machines")
    deletion: Deletion | None = Field(default=None, description="how they are deleted")


class MachineTemplate(Part):
    """The template of the machines."""

    metadata: Metadata | None = Field(default=None, description="labels and annotations of the machines")
    spec: MachineTemplateSpec = Field(description="the machines")


class ControlPlaneSpec(Part):
    """The control plane."""

    replicas: int = Field(
        default=3, ge=1, le=5, description="the number of machines: 1, 3, 4 or 5, as many as are listed"
    )
    version: str = Field(min_length=1, max_length=256, description="the release, v and openshiftVersion, e.g. v4.19.3")
    machine_template: MachineTemplate = Field(description="the template of the machines")
    manifest_secret_refs: tuple[SecretReference, ...] = Field(
        default=(),
        max_length=16,
        description="Secrets whose keys are files of manifests that the installer adds to its own",
    )


class ControlPlaneInitialized(Part):
    """The progress for which Cluster API waits."""

    control_plane_initialized: bool = Field(
        default=False, description="whether the control plane serves the API itself"
    )


class ControlPlaneStatus(WithConditions):
    """The observed state."""

    initialization: ControlPlaneInitialized | None = Field(default=None, description="the progress")
    version: str | None = Field(
        default=None, min_length=1, max_length=256, description="the release it was installed with"
    )
    selector: str | None = Field(default=None, description="the labels of its machines, for the subresource scale")
    replicas: int | None = Field(default=None, description="the number of machines")
    ready_replicas: int | None = Field(default=None, description="the number of Ready machines")
    available_replicas: int | None = Field(default=None, description="the number of Available machines")
    up_to_date_replicas: int | None = Field(
        default=None, description="the number of machines that match the specification"
    )
    external_managed_control_plane: bool = Field(default=False, description="false: its machines have Nodes")
