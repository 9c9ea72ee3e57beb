"""Gates: the conditions that are waited for. Answers are evaluated by pure functions, separate from I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from metal_ipi.provider.resource import Context


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The result of one look."""

    passed: bool
    text: str
    """What was seen, or what is waited for: one line."""
    waiting: tuple[str, ...] = ()
    """Names of the nodes that have not passed; empty if the gate is not about nodes."""
    fatal: str | None = None
    """A cause that waiting cannot cure."""
    pause: float = 0.0
    """Seconds until the next look, at least."""


def waiting_for(missing: Mapping[str, str]) -> Observation:
    """The observation that these nodes have not passed; node → reason."""
    text = "; ".join(f"{name} ({why})" for name, why in missing.items())
    return Observation(passed=False, text=text, waiting=tuple(missing))


class Check(Protocol):
    """Looks whether a gate's condition is true. Remembers what has passed already."""

    async def look(self, elapsed: float) -> Observation:
        """One look of a few seconds at most. Raises nothing for transient errors."""
        ...

    async def aclose(self) -> None:
        """Close what it keeps open between looks: nothing, if it does not say otherwise."""


Spec = Mapping[str, Any]
Opener = Callable[[Context, Spec, Spec | None], Check | None]
"""Makes the check of a specification. With an old specification, only for what is new; None if nothing is."""
