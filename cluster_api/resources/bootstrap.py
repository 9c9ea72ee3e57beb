"""The bootstrap provider's kind."""

from __future__ import annotations

from pydantic import Field

from metal_ipi.cluster_api.resources.base import Part, WithConditions


class ConfigSpec(Part):
    """What a machine is told: where its configuration is. There is nothing to choose."""


class DataSecretCreated(Part):
    """What Cluster API waits for."""

    data_secret_created: bool = Field(default=False, description="whether the Secret is there")


class ConfigStatus(WithConditions):
    """What there is."""

    initialization: DataSecretCreated | None = Field(default=None, description="how far it came")
    data_secret_name: str | None = Field(
        default=None, min_length=1, max_length=253, description="the Secret with the machine's Ignition, key value"
    )
