"""The object that Cluster API makes for an unhealthy Machine of a MachineHealthCheck.

Source: the proposal «external remediation» of Cluster API, and sigs.k8s.io/cluster-api v1.12.2,
internal/controllers/machinehealthcheck.
"""

from __future__ import annotations

from pydantic import Field

from metal_ipi.cluster_api.resources.base import Part, WithConditions


class RemediationSpec(Part):
    """Power cycles; after the last one the Machine is left to its owner, which replaces it."""

    power_cycles: int = Field(default=1, ge=0, le=10, description="how many times its server is power-cycled; 0: never")
    timeout_seconds: int = Field(
        default=600, ge=10, le=86400, description="seconds for the node to come back after a power cycle"
    )


class RemediationStatus(WithConditions):
    """The progress."""

    power_cycles: int | None = Field(default=None, ge=0, description="the number of power cycles that were begun")
    last_power_cycle: str | None = Field(
        default=None, description="when the last one was begun", json_schema_extra={"format": "date-time"}
    )
