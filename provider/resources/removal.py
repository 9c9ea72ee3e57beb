"""`Removal` and its inputs, for programs."""

from __future__ import annotations

from typing import Annotated, Any

import pulumi

from metal_ipi.provider.forms import Directory, FileName, Platform, Seconds, between
from metal_ipi.provider.given import LEFT_OUT, Given, GivenList, ListOf, default
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import Resource, computed
from metal_ipi.provider.resources.dns_records import RemovalRecordArgs


class RemovalArgs(Inputs):
    """Arguments of `Removal`."""

    machine_id: Given[str | None] = default()
    """The machine to delete."""
    platform: Given[Platform] = default("equinix-metal")
    """The driver that deletes it."""
    records: ListOf[RemovalRecordArgs] = default(())
    """DNS values to withdraw before the machine is deleted."""
    drain_seconds: Given[Annotated[float, between(0, 86400)]] = default(0)
    """Seconds to wait between the two: the TTL of the records."""
    artifacts_directory: Given[Directory | None] = default()
    """The output `directory` of the `Artifacts`."""
    artifacts_files: Annotated[GivenList[FileName], LEFT_OUT] = default(())
    """Names of its files to delete; the directory is removed with its last file."""
    triggers: GivenList[Any] = default(())
    """A change of any of them removes everything that is named here once more."""
    timeout_seconds: Given[Seconds] = default(1800)
    """Seconds until the machine must be gone."""


class Removal(Resource[RemovalArgs]):
    """Removes an ephemeral machine, its DNS values and its files. Must depend on the gate after which they are no
    longer needed."""

    removed_at: pulumi.Output[str] = computed()
    """Time at which everything was gone, ISO 8601 in UTC."""
