"""What devices cost: hours begun since they were made, at the price of their plan in their metro."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from starlette.datastructures import QueryParams

from lab.metal_api.body import Body
from lab.metal_api.devices.models import Device, project_devices
from lab.metal_api.records import Json
from lab.metal_api.spot_market import prices
from lab.metal_api.state import Account

_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Period:
    """The time that is asked for; None: from the beginning, until now."""

    after: datetime | None
    before: datetime | None

    @classmethod
    def of(cls, query: QueryParams) -> Period:
        """From the query parameters; Unprocessable for what is no time."""
        body = Body({name: query.get(f"created[{name}]") for name in ("after", "before")})
        after, before = body.moment("after"), body.moment("before")
        body.check()
        return cls(after=after, before=before)

    def hours(self, begun: datetime, now: datetime) -> int:
        """Hours begun in it by something that there is since `begun`."""
        start = max(begun, self.after) if self.after else begun
        end = min(now, self.before) if self.before else now
        return max(0, math.ceil((end - start).total_seconds() / _HOUR))


def of_device(account: Account, device: Device, period: Period) -> Json:
    """Quantity, unit and total of one device, as texts."""
    begun = datetime.fromisoformat(device.created_at.replace("Z", "+00:00"))
    hours = period.hours(begun, account.clock.now())
    return {"quantity": str(hours), "unit": "hour", "total": f"{hours * _price(account, device):.2f}"}


def _price(account: Account, device: Device) -> float:
    """USD per hour: of a spot device, the market's of now."""
    if device.spot_instance:
        return prices.price(account, device.facility, device.plan)
    return device.hardware.price_in(device.metro)


def of_project(account: Account, project_id: str, period: Period) -> list[Json]:
    """One entry per device that the project has."""
    return [
        {
            **of_device(account, device, period),
            "name": device.hostname,
            "facility": device.facility,
            "plan": device.plan,
            "plan_version": "",
            "type": "Instance",
            "price": f"{_price(account, device):.2f}",
        }
        for device in project_devices(account, project_id)
    ]
