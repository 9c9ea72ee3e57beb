"""The bootstrap provider's kind."""

from __future__ import annotations

from pydantic import Field

from metal_ipi.cluster_api.resources.base import Part, WithConditions


class ConfigSpec(Part):
    """The configuration that a machine boots with. It has no fields to set."""


class DataSecretCreated(Part):
    """The progress for which Cluster API waits."""

    data_secret_created: bool = Field(default=False, description="whether the Secret exists")


class ConfigStatus(WithConditions):
    """The observed state."""

    initialization: DataSecretCreated | None = Field(default=None, description="the progress")
    data_secret_name: str | None = Field(
        default=None, min_length=1, max_length=253, description="the Secret with the machine's Ignition, key value"
    )
