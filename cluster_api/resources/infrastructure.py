"""The infrastructure provider's kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from metal_ipi.cluster_api.resources.base import Endpoint, Name, Part, SecretReference, WithConditions

DomainName = Annotated[str, Field(min_length=1, max_length=256)]


class Domain(Part):
    """Servers that fail together."""

    name: DomainName = Field(description="its name, e.g. of a rack or a room")
    servers: tuple[Name, ...] = Field(
        min_length=1, max_length=1000, description="listed servers, e.g. control-plane-0; each is in one domain only"
    )


class ClusterSpec(Part):
    """A facility, and the settings of its cluster."""

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
    failure_domains: tuple[Domain, ...] = Field(
        default=(), max_length=100, description="servers that fail together; the control plane is spread over them"
    )


class DomainStatus(Part):
    """A failure domain in the form of Cluster API."""

    name: DomainName = Field(description="its name")
    control_plane: bool = Field(default=False, description="whether it has control plane servers")


class Provisioned(Part):
    """The progress for which Cluster API waits."""

    provisioned: bool = Field(default=False, description="whether the first provisioning is complete")


class ClusterStatus(WithConditions):
    """The observed state."""

    initialization: Provisioned | None = Field(default=None, description="the progress of the first provisioning")
    failure_domains: tuple[DomainStatus, ...] = Field(
        default=(),
        max_length=100,
        description="the failure domains that Machines may name",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


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
        default=None, description="a listed server, e.g. worker-0; not set: the provider chooses a free one of the role"
    )
    pool: Literal["control-plane", "worker"] | None = Field(
        default=None, description="the role of the server; not set: the role in the Machine's labels"
    )


class Address(Part):
    """An address of a machine."""

    type: Literal["Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"] = Field(description="its type")
    address: Name = Field(description="the address")


class MachineStatus(WithConditions):
    """The observed state."""

    initialization: Provisioned | None = Field(default=None, description="the progress of the first provisioning")
    failure_domain: DomainName | None = Field(default=None, description="the failure domain of its server")
    addresses: tuple[Address, ...] = Field(default=(), description="the addresses of the machine")
