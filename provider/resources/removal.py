"""`Removal`, as programs see it, and its inputs."""

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
    """Which driver deletes it."""
    records: ListOf[RemovalRecordArgs] = default(())
    """DNS values to withdraw before the machine goes."""
    drain_seconds: Given[Annotated[float, between(0, 86400)]] = default(0)
    """How long to wait between the two: the records' TTL."""
    artifacts_directory: Given[Directory | None] = default()
    """`Artifacts.directory`."""
    artifacts_files: Annotated[GivenList[FileName], LEFT_OUT] = default(())
    """Names of its files to delete; the directory goes with the last one."""
    triggers: GivenList[Any] = default(())
    """A change of any of them removes everything named here once more."""
    timeout_seconds: Given[Seconds] = default(1800)
    """How long the machine may take to be gone."""


class Removal(Resource[RemovalArgs]):
    """Removes an ephemeral machine, its DNS values and its files. Let it depend on the gate they were needed for."""

    removed_at: pulumi.Output[str] = computed()
    """When everything named was gone, ISO 8601 in UTC."""
