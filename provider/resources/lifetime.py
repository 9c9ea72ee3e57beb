"""`Lifetime` and its inputs, for programs."""

from __future__ import annotations

from typing import Annotated

import pulumi

from metal_ipi.provider.forms import Whole, between
from metal_ipi.provider.given import Given
from metal_ipi.provider.inputs import Inputs
from metal_ipi.provider.resources.base import Resource, computed


class LifetimeArgs(Inputs):
    """Inputs of `Lifetime`."""

    hours: Given[Annotated[Whole, between(1, 24 * 365)]]
    """Hours from the first `up` on."""


class Lifetime(Resource[LifetimeArgs]):
    """The time at which the platform deletes a cluster's machines: some hours after this resource was created. It never
    changes."""

    ends_at: pulumi.Output[str] = computed()
    """RFC 3339, UTC."""

    def __init__(self, name: str, hours: pulumi.Input[int], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, LifetimeArgs(hours=hours), opts)
