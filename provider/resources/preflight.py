"""`Preflight`, as programs see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from metal_ipi.provider.preflight.plan import Plan
from metal_ipi.provider.resources.base import Resource


class Preflight(Resource[Mapping[str, Any]]):
    """Checks a stack, and fails with everything that is wrong. Let depend on it what is ordered."""

    def __init__(
        self, name: str, plan: Plan, *, run: pulumi.Input[str], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """`run` tells this installation from others of the same stack and cluster."""
        super().__init__(name, {**plan.to_wire(), "run": run}, opts)
