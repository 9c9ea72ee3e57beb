"""`SpotMachine` and its inputs, for programs."""

from __future__ import annotations

import pulumi

from metal_ipi.provider.forms import Seconds, ShortName
from metal_ipi.provider.given import Given, GivenList, default
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import computed
from metal_ipi.provider.resources.machine import Machine


class SpotMachineArgs(Inputs):
    """Arguments of `SpotMachine`."""

    request_id: Given[str]
    """Id of the spot market request. A change replaces."""
    machine_ids: GivenList[str]
    """Ids of the machines that the request has, as the platform reports them in this run."""
    hostname: Given[ShortName]
    """Host name."""
    timeout_seconds: Given[Seconds] = default(1800)
    """Seconds until it must have an active machine, and seconds until that must be gone."""


class SpotMachine(Machine[SpotMachineArgs]):
    """The machine that a spot market request has got. The next up notices if it was evicted."""

    bond: pulumi.Output[str] = computed()
    """Id of the port that bonds its interfaces."""
