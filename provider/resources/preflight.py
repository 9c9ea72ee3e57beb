"""`Preflight`, as programs see it."""

from __future__ import annotations

import pulumi

from provider.preflight.plan import Plan
from provider.resources.base import Resource


class Preflight(Resource):
    """Checks a stack, and fails with everything that is wrong. Let depend on it what is ordered."""

    def __init__(
        self, name: str, plan: Plan, *, run: pulumi.Input[str], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """`run` tells this installation from others of the same stack and cluster."""
        super().__init__(name, {**plan.to_wire(), "run": run}, opts)
