"""Speeds as bodies write them: bits per second, or a number with a unit."""

from __future__ import annotations

import re

_SPEED = re.compile(r"(\d+)\s*(bps|b|kbps|k|mbps|m|gbps|g)?", re.IGNORECASE)
_UNITS = {"b": 1, "k": 10**3, "m": 10**6, "g": 10**9}
SHARED = tuple(number * 10**6 for number in (50, 200, 500, 1000, 2000, 5000, 10000))
DEDICATED = (10 * 10**9, 100 * 10**9)
DEFAULT = 10 * 10**9


def parse(value: object) -> int | None:
    """Bits per second; None for what is no speed."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    found = _SPEED.fullmatch(str(value).strip())
    return int(found[1]) * _UNITS[(found[2] or "b")[0].lower()] if found else None
