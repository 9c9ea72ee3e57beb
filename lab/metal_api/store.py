"""Keeps the account's tables in one file: a journal of changes, written anew when it has grown.

It survives the death of the process, not of the system: nothing is synchronised to the disk, which would make every
request wait for it, and an emulated facility does not outlive the system anyway. What a commit writes is one line, so
that a death in the middle of it leaves a line that is not whole, which is taken as never written.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TextIO

from lab.metal_api.records import Json, Tables

_GROWN = 1 << 20
"""Characters that a journal may always have before it is written anew."""


def read(path: Path) -> dict[str, dict[str, Json]]:
    """The records in a file, as JSON by table and id."""
    tables: dict[str, dict[str, Json]] = {}
    for line in path.read_text().split("\n")[:-1]:  # what follows the last line's end was never whole
        for table, identity, document in json.loads(line):
            if document is None:
                tables.get(table, {}).pop(identity, None)
            else:
                tables.setdefault(table, {})[identity] = document
    return tables


class Store:
    """Writes what changed when asked.

    A request that changed something calls `commit` before it is answered, so that a kill -9 never takes back what a
    client was told. Changes that nobody is told of (events) are written a little later by themselves.
    """

    def __init__(self, path: Path, tables: Tables, *, delay: float = 0.2) -> None:
        self._path = path
        self._tables = tables
        self._delay = delay
        self._journal: TextIO | None = None
        self._size = 0
        self._limit = 0
        self._timer: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Take up what was written last, if anything was, and note every change from now on."""
        if self._path.exists():
            self._tables.restore(read(self._path))
        self._tables.touched = self._touch

    def _touch(self) -> None:
        if self._timer is None or self._timer.done():
            self._timer = asyncio.get_running_loop().create_task(self._later())

    def commit(self) -> None:
        """Write all changes until now to the file."""
        if self._journal is None or self._size > self._limit:
            self._write_anew()
            return
        changes = self._tables.changes()
        if changes:
            self._append(self._journal, changes)
            self._journal.flush()

    def close(self) -> None:
        """Write what is left."""
        if self._timer is not None:
            self._timer.cancel()
        self.commit()
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    async def _later(self) -> None:
        await asyncio.sleep(self._delay)
        self.commit()

    def _append(self, stream: TextIO, changes: list[list[object]]) -> None:
        self._size += stream.write(json.dumps(changes, separators=(",", ":")) + "\n")

    def _write_anew(self) -> None:
        if self._journal is not None:
            self._journal.close()
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._path.with_suffix(".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._journal, self._size = os.fdopen(descriptor, "w"), 0
        for change in self._tables.everything():
            self._append(self._journal, [change])
        self._journal.flush()
        temporary.replace(self._path)
        self._limit = max(_GROWN, 4 * self._size)
