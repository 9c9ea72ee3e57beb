"""The infrastructure provider's kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from metal_ipi.cluster_api.resources.base import Endpoint, Name, Part, SecretReference, WithConditions


class ClusterSpec(Part):
    """A facility and the cluster that it is to be."""

    control_plane_endpoint: Endpoint | None = Field(
        default=None, description="where the API is served; not set: the provider sets api.<clusterName>.<baseDomain>"
    )
    settings: Mapping[str, Any] = Field(
        description="the settings of the cluster's stack file, without the prefix metal-ipi: and without secrets"
    )
    secrets_ref: SecretReference | None = Field(
        default=None,
        description="a Secret whose keys are the paths of secret settings, e.g. platform.servers.0.bmc.password",
    )


class Provisioned(Part):
    """What Cluster API waits for."""

    provisioned: bool = Field(default=False, description="whether it is there")


class ClusterStatus(WithConditions):
    """What there is."""

    initialization: Provisioned | None = Field(default=None, description="how far the first provisioning came")


class MachineSpec(Part):
    """One server of the facility."""

    provider_id: str | None = Field(
        default=None,
        alias="providerID",
        min_length=1,
        max_length=512,
        description="metal-ipi://<host name>, set by the provider",
    )
    server: Name | None = Field(
        default=None, description="a listed server, e.g. worker-0; not set: the provider takes a free one of the role"
    )
    pool: Literal["control-plane", "worker"] | None = Field(
        default=None, description="the role that the server is listed for; not set: as the Machine's labels say"
    )


class Address(Part):
    """An address of a machine."""

    type: Literal["Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"] = Field(
        description="what it is"
    )
    address: Name = Field(description="the address")


class MachineStatus(WithConditions):
    """What there is."""

    initialization: Provisioned | None = Field(default=None, description="how far the first provisioning came")
    addresses: tuple[Address, ...] = Field(default=(), description="where it is reached")
