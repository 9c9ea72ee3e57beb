"""What a MachineHealthCheck has be made for a Machine that is not healthy.

Source: the proposal «external remediation» of Cluster API, and sigs.k8s.io/cluster-api v1.12.2,
internal/controllers/machinehealthcheck.
"""

from __future__ import annotations

from pydantic import Field

from metal_ipi.cluster_api.resources.base import Part, WithConditions


class RemediationSpec(Part):
    """Power cycles first; then the Machine is handed over to its owner, which makes it anew."""

    power_cycles: int = Field(default=1, ge=0, le=10, description="how often its server is power-cycled; 0: never")
    timeout_seconds: int = Field(
        default=600, ge=10, le=86400, description="how long a power cycle has to bring the node back, s"
    )


class RemediationStatus(WithConditions):
    """How far it came."""

    power_cycles: int | None = Field(default=None, ge=0, description="how many power cycles were begun")
    last_power_cycle: str | None = Field(
        default=None, description="when the last one was begun", json_schema_extra={"format": "date-time"}
    )
