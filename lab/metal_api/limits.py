"""How many requests a token may make in a time: as many as it likes, until the lab is told otherwise.

The real API's limits are written down nowhere we know of. Told of one (`/lab/rate-limit`), the lab answers what is too
much with 429 and says in `Retry-After` when the next request is welcome, in whole seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from lab.metal_api.body import Body
from lab.metal_api.exceptions import TooManyRequests
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

_ID = "api"


@saved("rate_limits")
@dataclass(kw_only=True)
class RateLimit(Record):
    """The one limit; it is for each token by itself."""

    id: str
    requests: int
    seconds: float


class Limiter:
    """Counts requests by token, in windows that begin with a first request. What it counted ends with the process."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._windows: dict[str, tuple[datetime, int]] = {}

    def count(self, token: str) -> None:
        """Note a request; raises TooManyRequests."""
        limit = self._account.table(RateLimit).get(_ID)
        if limit is None:
            return
        now = self._account.clock.now()
        begun, count = self._windows.get(token, (now, 0))
        if now >= begun + timedelta(seconds=limit.seconds):
            begun, count = now, 0
        if count >= limit.requests:
            left = begun + timedelta(seconds=limit.seconds) - now
            raise TooManyRequests(max(1, math.ceil(left.total_seconds())))
        self._windows[token] = (begun, count + 1)


def tell(account: Account, document: Json) -> RateLimit:
    """Set the limit: `requests` in `seconds`."""
    body = Body(document)
    unknown = document.keys() - {"requests", "seconds"}
    if unknown:
        body.problems.append(f"unknown keys: {', '.join(sorted(unknown))}")
    requests, seconds = body.integer("requests", least=1), body.number("seconds", least=0.1)
    if requests is None or seconds is None:
        body.problems.append("requests and seconds must both be given, as in 100 requests in 60 seconds")
    body.check()
    return account.table(RateLimit).add(RateLimit(id=_ID, requests=requests or 0, seconds=seconds or 0))


def lift(account: Account) -> None:
    """No limit any more."""
    account.table(RateLimit).clear()
