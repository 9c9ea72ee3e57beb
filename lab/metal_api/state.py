"""The account: its tables, and what all rules need. Knows nothing of HTTP and starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.metal_api.records import R, Table, Tables
from lab.metal_api.sources import Chance, Clock, timestamp


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who the one user of the lab is."""

    token: str
    organization_id: str
    project_id: str
    """A project that is there from the start."""


class Account:
    """Everything the lab's token can see."""

    def __init__(self, identity: Identity, clock: Clock, chance: Chance) -> None:
        self.identity = identity
        self.clock = clock
        self.chance = chance
        self.tables = Tables()
        self.routes_changed: Callable[[], None] = lambda: None
        """Called after every change that concerns the facility's router; `routing` hooks in here."""

    def now(self) -> str:
        """The present, as the API writes it."""
        return timestamp(self.clock.now())

    def table(self, kind: type[R]) -> Table[R]:
        """The saved records of a kind, by id."""
        return self.tables.table(kind)
