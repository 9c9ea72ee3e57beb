"""The record of an `up`, kept for the timeline: what it did, and when."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from tools.progress import Progress
from tools.state import urn_name


@dataclass(frozen=True, kw_only=True)
class Step:
    """One operation on one resource."""

    name: str
    type: str
    op: str
    begin: float
    """Seconds from the start of the run."""
    end: float | None
    """Seconds from the start of the run; None: it was still going on when the run ended."""
    failed: bool
    told: str = ""
    """What a gate observed when it passed, or why a step failed."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of `up`."""

    stack: str
    began: str
    """Start time in UTC, for people."""
    seconds: float
    failed: bool
    steps: tuple[Step, ...]
    """In the order in which they began."""


def of_progress(
    progress: Progress, stack: str, began: datetime, since: float, redact: Callable[[str], str], *, failed: bool
) -> Run:
    """The record of an `up` that ends now. `since`: its start, on the clock of `progress`."""
    steps: list[Step] = []
    for step in progress.steps.values():
        messages = progress.errors.get(step.urn) or [step.status]
        steps.append(
            Step(
                name=urn_name(step.urn),
                type=step.type,
                op=step.op,
                begin=round(step.started - since, 2),
                end=None if step.ended is None else round(step.ended - since, 2),
                failed=step.failed,
                told=redact(messages[0].partition("\n")[0] if step.failed else step.observed),
            )
        )
    return Run(
        stack=stack,
        began=f"{began:%Y-%m-%d %H:%M} UTC",
        seconds=round(progress.clock() - since, 2),
        failed=failed,
        steps=tuple(steps),
    )


def write(run: Run) -> str:
    """The record as JSON."""
    return json.dumps(asdict(run), indent=1) + "\n"


def read(text: str) -> Run:
    """Reads a record from JSON. Raises ValueError, KeyError, TypeError or AttributeError if it is invalid."""
    document: dict[str, Any] = json.loads(text)
    steps = tuple(Step(**each) for each in document.pop("steps"))
    return Run(**document, steps=steps)
