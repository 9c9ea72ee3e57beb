"""Gates: what is waited for. The evaluation of answers is pure and apart from the I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from metal_ipi.provider.resource import Context


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What one look saw."""

    passed: bool
    text: str
    """What was seen, or what is waited for: one line."""
    waiting: tuple[str, ...] = ()
    """Names of the nodes that have not passed; empty when the gate is not about nodes."""
    fatal: str | None = None
    """A cause that waiting will not cure."""


def waiting_for(missing: Mapping[str, str]) -> Observation:
    """That nodes have not passed, each with the reason."""
    text = "; ".join(f"{name} ({why})" for name, why in missing.items())
    return Observation(passed=False, text=text, waiting=tuple(missing))


class Check(Protocol):
    """Looks whether a gate is open. Keeps what passed already."""

    async def look(self, elapsed: float) -> Observation:
        """One look, at most some seconds long. Raises nothing for what may pass by itself."""
        ...


Spec = Mapping[str, Any]
Opener = Callable[[Context, Spec, Spec | None], Check | None]
"""Makes the check of a specification; with an old one, only for what is new, and None when nothing is."""
