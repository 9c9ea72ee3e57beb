"""Faults of a BMC that tests and users can switch on.

On its wire, until cleared:
    away               is not there: connections are ended at once
On its wire, until `count` requests are struck or `seconds` are over:
    slow               answers after `seconds`
    unavailable        answers 503 with Retry-After
    reset              cuts the connection without an answer
    session_lost       forgets all sessions, and answers a token with 401
Of its certificate, until cleared:
    certificate        `which`: expired, early (not valid yet), other-name or other-ca
Of its clock, until cleared:
    clock              is `days` off: Manager DateTime and what is dated
Of what it does, until cleared:
    boot_not_honoured  takes a one-time boot, shows it, and boots as ever
    boot_dropped       takes a one-time boot, and forgets it at once
    stale_power        goes on reporting the former power state for `seconds` after it changed
    deaf_shutdown      takes GracefulShutdown, and does not press the button
    raid_refused       makes no volume
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields
from typing import Any

from lab.bmc.names import CERTIFICATES, FAULTS

_TAKES = {
    "slow": {"seconds", "count"},
    "unavailable": {"seconds", "count"},
    "reset": {"seconds", "count"},
    "session_lost": {"count"},
    "certificate": {"which"},
    "clock": {"days"},
    "stale_power": {"seconds"},
}
_NEEDS = {"slow": "seconds", "certificate": "which", "clock": "days", "stale_power": "seconds"}


class Refused(Exception):
    """A request that the lab refuses; the text says why."""


@dataclass(kw_only=True)
class Fault:
    """One misbehaviour of one BMC."""

    kind: str
    count: int | None = None
    """The number of requests that it still affects; None: all."""
    seconds: float | None = None
    which: str = ""
    days: float = 0.0
    hits: int = 0
    since: float = field(default_factory=time.monotonic)


def parse(wanted: dict[str, Any]) -> Fault:
    """A fault from a control request; refuses one that would never have an effect."""
    kind = wanted.get("kind")
    if kind not in FAULTS:
        raise Refused(f"kind: {kind!r} is not one of {', '.join(FAULTS)}")
    takes = _TAKES.get(kind, set())
    given = {key: value for key, value in wanted.items() if key != "kind" and value is not None}
    if given.keys() - takes:
        raise Refused(f"{kind} takes {', '.join(sorted(takes)) or 'nothing'}, not {', '.join(sorted(given))}")
    needed = _NEEDS.get(kind)
    if needed is not None and needed not in given:
        raise Refused(f"{kind} needs {needed}")
    if kind == "certificate" and given["which"] not in CERTIFICATES:
        raise Refused(f"which: {given['which']!r} is not one of {', '.join(CERTIFICATES)}")
    if kind in {"reset", "session_lost"} and not given:
        given["count"] = 1
    return Fault(kind=kind, **given)


def show(fault: Fault) -> dict[str, Any]:
    """A fault as JSON, without fields that are not set."""
    told = {each.name: getattr(fault, each.name) for each in fields(fault) if each.name != "since"}
    return {key: value for key, value in told.items() if value not in (None, "", 0.0) or key == "hits"}


class Faults:
    """The current faults of one BMC."""

    def __init__(self) -> None:
        self.active: list[Fault] = []

    def find(self, kind: str) -> Fault | None:
        """The fault of this kind, if there is one; not counted."""
        return next((fault for fault in self.active if fault.kind == kind), None)

    def strike(self, kind: str) -> Fault | None:
        """The same, and counted; the fault ends after its last request, or when its time is over."""
        fault = self.find(kind)
        if fault is None:
            return None
        lasts = fault.seconds is not None and kind in {"unavailable", "reset"}
        if lasts and time.monotonic() > fault.since + (fault.seconds or 0):
            self.active.remove(fault)
            return None
        fault.hits += 1
        if fault.count is not None:
            fault.count -= 1
            if fault.count <= 0:
                self.active.remove(fault)
        return fault
