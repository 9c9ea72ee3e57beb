"""`SpotMachine`, as programs see it, and its inputs."""

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
    """The spot market request. A change replaces."""
    machine_ids: GivenList[str]
    """The ids of the machines that the request has, as the platform tells at this run."""
    hostname: Given[ShortName]
    """Host name."""
    timeout_seconds: Given[Seconds] = default(1800)
    """How long it may take until it has an active machine, and as long again to be gone."""


class SpotMachine(Machine[SpotMachineArgs]):
    """The machine that a spot market request has got. One that is evicted is noticed by the next up."""

    bond: pulumi.Output[str] = computed()
    """The id of the port that bonds its interfaces."""
