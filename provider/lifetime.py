"""Lifetime: the time at which the platform deletes a cluster's machines, whatever runs on them. For rehearsals.

Life cycle: create adds the hours to the current time. After that the end is fixed: machines are ordered with it, and
the platform cannot change it (`preflight.lasting` refuses other hours). After the end every update is refused: the rest
of such a cluster has no etcd, and new machines would not form a cluster with it. read and delete touch nothing.

Killed at any moment: nothing exists outside the state, and no machine was ordered yet.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.resource import Changes, Context, Made, ResourceType, Values
from metal_ipi.provider.resources.lifetime import LifetimeArgs
from metal_ipi.provider.values import UNKNOWN

_LONGEST = 24 * 365


class Lifetime(ResourceType):
    """The time at which the platform deletes a cluster's machines."""

    token = "metal-ipi:index:Lifetime"  # noqa: S105 - a type token
    inputs = LifetimeArgs

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        if self._is_over(old):
            return Changes(changes={"endsAt": "update"})
        return Changes(warning=_warning(old["endsAt"]))

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        if old is not None:
            self._refuse(old)
        return {"endsAt": UNKNOWN}

    async def create(self, context: Context, inputs: Values) -> Made:
        now = datetime.fromtimestamp(self._clock(), UTC).replace(microsecond=0)
        ends_at = f"{now + timedelta(hours=float(inputs['hours'])):%Y-%m-%dT%H:%M:%SZ}"
        await context.status.warn(_warning(ends_at))
        return Made(id=secrets.token_hex(8), outputs={"endsAt": ends_at})

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        self._refuse(old)
        return {"endsAt": old["endsAt"]}

    def _is_over(self, old: Values) -> bool:
        return datetime.fromisoformat(str(old["endsAt"]).replace("Z", "+00:00")).timestamp() <= self._clock()

    def _refuse(self, old: Values) -> None:
        """Raise InvalidInputs if the cluster's time is over."""
        if self._is_over(old):
            raise InvalidInputs(
                f"the lifetime of this cluster (platform.lifetimeHours) ended at {old['endsAt']}: the platform has "
                "deleted its machines, including etcd. Run `make down`, and `make up` for a new one"
            )


def _warning(ends_at: str) -> str:
    return f"the platform deletes every machine of this cluster at {ends_at}"
