"""What the kinds have in common: forms of Kubernetes and of Cluster API's contract v1beta2.

Source: sigs.k8s.io/cluster-api v1.12.2, docs/book/src/developer/providers/contracts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Name = Annotated[str, Field(min_length=1, max_length=253)]
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
"""The name of an object: it is part of a path of the API."""


class Part(BaseModel):
    """A part of an object, by its names in YAML."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Metadata(Part):
    """Metadata of created objects."""

    labels: Mapping[str, str] = Field(default={}, description="labels")
    annotations: Mapping[str, str] = Field(default={}, description="annotations")


class Reference(Part):
    """An object of the same namespace, without a version."""

    api_group: Name = Field(description="its API group")
    kind: Name = Field(description="its kind")
    name: ObjectName = Field(description="its name")


class SecretReference(Part):
    """A Secret of the same namespace."""

    name: ObjectName = Field(description="its name")


class Endpoint(Part):
    """Where the cluster's API is served."""

    host: str = Field(default="", max_length=512, description="its name or address")
    port: int = Field(default=0, ge=0, le=65535, description="its port")


class Condition(Part):
    """As metav1.Condition."""

    type: Name = Field(description="the name of the condition")
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown")
    reason: str = Field(default="", max_length=1024, description="the reason, in one word")
    message: str = Field(default="", max_length=32768, description="the reason, for people")
    last_transition_time: str = Field(
        default="", description="when its status changed", json_schema_extra={"format": "date-time"}
    )
    observed_generation: int = Field(default=0, ge=0, description="the generation of the object to which this belongs")


class WithConditions(Part):
    """The fields that every status has."""

    conditions: tuple[Condition, ...] = Field(
        default=(),
        max_length=32,
        description="the conditions",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
