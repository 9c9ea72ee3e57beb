"""What belongs to one event loop, as asyncio's locks do: a test runs many of them in a process, a provider one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

_T = TypeVar("_T")


class PerLoop(Generic[_T]):
    """A value of each event loop, made at its first use there."""

    def __init__(self, make: Callable[[], _T]) -> None:
        self._make = make
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, _T] = WeakKeyDictionary()

    def get(self) -> _T:
        """That of the loop that runs."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            self._values[loop] = self._make()
        return self._values[loop]
