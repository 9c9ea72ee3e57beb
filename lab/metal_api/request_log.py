"""What was asked of the API, and how long answers took."""

from __future__ import annotations

import re
from collections import Counter, deque

from lab.metal_api.records import Json

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_REMEMBERED = 100_000


class RequestLog:
    """How often each route was asked, with which statuses, and how long the newest of all requests took; ids in paths
    are written `{id}`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self._seconds: deque[float] = deque(maxlen=_REMEMBERED)

    def add(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one answered (or lost: status 0) request."""
        route = f"{method} {_UUID.sub('{id}', path)}"
        self.counts[route] += 1
        self.statuses[f"{route} {status}"] += 1
        self._seconds.append(seconds)

    def shown(self) -> Json:
        """All of it; seconds are 0 before there was a request."""
        ordered = sorted(self._seconds) or [0.0]
        last = len(ordered) - 1
        seconds = {
            name: ordered[min(int(len(ordered) * share), last)] for name, share in (("median", 0.5), ("p95", 0.95))
        }
        return {"counts": dict(self.counts), "statuses": dict(self.statuses), "seconds": seconds}
