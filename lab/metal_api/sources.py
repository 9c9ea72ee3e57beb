"""Time and randomness, injected so that tests choose them."""

from __future__ import annotations

import asyncio
import random
import secrets
import uuid
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

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
        """A short hexadecimal string."""
        return f"{self._random.getrandbits(64):016x}"


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as the API writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
