"""The account: its tables, its clock and its randomness. It knows nothing of HTTP and starts nothing."""

from __future__ import annotations

import asyncio
import random
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from lab.metal_api.records import R, Table, Tables


class Clock(Protocol):
    """The clock; tests use one of their own."""

    def now(self) -> datetime: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Chance:
    """Identifiers and passwords; with a seed they are the same in every run."""

    def __init__(self, seed: int | None = None) -> None:
        self._random: random.Random = secrets.SystemRandom() if seed is None else random.Random(seed)

    def uuid(self) -> str:
        """A random (version 4) UUID."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def password(self) -> str:
        """A root password like Metal's: ten letters and digits."""
        return "".join(self._random.choice("abcdefghijkmnpqrstuvwxyzACDEFGHJKLMNPQRSTUVWXYZ2345679") for _ in range(10))

    def token(self) -> str:
        """A hexadecimal string of 32 digits."""
        return f"{self._random.getrandbits(128):032x}"


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as the API writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The identity of the lab's only user."""

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

    def seconds(self) -> float:
        """The present, in seconds of the epoch."""
        return self.clock.now().timestamp()

    def table(self, kind: type[R]) -> Table[R]:
        """The saved records of a kind, by id."""
        return self.tables.table(kind)

    def make(self, kind: type[R], /, **fields: Any) -> R:
        """Save a new record of a kind, with an id, unless `fields` have one, and its times."""
        now = self.now()
        own = {"id": self.chance.uuid(), "created_at": now, "updated_at": now}
        return self.table(kind).add(kind(**{**own, **fields}))
