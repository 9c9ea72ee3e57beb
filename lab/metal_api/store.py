"""Keeps the account in one file, replaced atomically.

It survives the death of the process, not of the system: nothing is synchronised to the disk, which would make every
request wait for it, and an emulated facility does not outlive the system anyway.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Store:
    """Writes a snapshot when asked; whoever asks while a write runs shares the next one.

    A request that changed something waits for `commit` before it is answered, so that a kill -9 never takes back
    what a client was told. Background changes (events) call `touch` and are written a little later.
    """

    def __init__(self, path: Path, snapshot: Callable[[], dict[str, list[Any]]], *, delay: float = 0.2) -> None:
        self._path = path
        self._snapshot = snapshot
        self._delay = delay
        self._version = 0
        self._written = 0
        self._lock = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    def load(self) -> dict[str, Any] | None:
        """What was written last, or None at the first start."""
        if not self._path.exists():
            return None
        return json.loads(self._path.read_text())

    def touch(self) -> None:
        """Note a change that may be written later."""
        self._version += 1
        if self._timer is None or self._timer.done():
            self._timer = asyncio.get_running_loop().create_task(self._later())

    async def commit(self) -> None:
        """Return when everything changed until now is on disk."""
        wanted = self._version
        async with self._lock:
            if self._written >= wanted:
                return
            self._written = self._version
            text = json.dumps(self._snapshot(), default=vars)
            await asyncio.to_thread(self._write, text)

    async def close(self) -> None:
        """Write what is left."""
        if self._timer is not None:
            self._timer.cancel()
        await self.commit()

    async def _later(self) -> None:
        await asyncio.sleep(self._delay)
        await self.commit()

    def _write(self, text: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._path.with_suffix(".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text)
        temporary.replace(self._path)
