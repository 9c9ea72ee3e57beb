"""Values that belong to one event loop, such as asyncio's locks. A provider has one loop, but tests run many in a
process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

_T = TypeVar("_T")


class PerLoop(Generic[_T]):
    """A value for each event loop, made at its first use."""

    def __init__(self, make: Callable[[], _T]) -> None:
        self._make = make
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, _T] = WeakKeyDictionary()

    def get(self) -> _T:
        """The value of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            self._values[loop] = self._make()
        return self._values[loop]
