"""`Preflight`, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from metal_ipi.provider.preflight.plan import Plan
from metal_ipi.provider.resources.base import Resource


class Preflight(Resource[Mapping[str, Any]]):
    """Checks a stack, and fails with a list of everything that is wrong. Everything that is ordered must depend on
    it."""

    def __init__(
        self, name: str, plan: Plan, *, run: pulumi.Input[str], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """`run` distinguishes this installation from others of the same stack and cluster."""
        super().__init__(name, {**plan.to_wire(), "run": run}, opts)
