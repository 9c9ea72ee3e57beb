"""The errors of the provider.

ProviderError              what the user sees: what went wrong, where, and what to do about it
├── InvalidInputs          an input which only turned out wrong while working
├── RemoteError            a service answered no, or not at all
│   ├── DnsConflict        a record set holds values of somebody else
│   └── Throttled          a service wants to be left alone for a while (provider.dns_services)
├── GateFailed             a gate gave up, or saw a fatal cause
└── InitFailed             something was made, but not finished: carries the state to keep, so that nothing is lost
"""

from __future__ import annotations

from typing import Any


class ProviderError(Exception):
    """A message for the user; never a traceback, never a secret."""


class InvalidInputs(ProviderError):
    """An input is wrong."""


class RemoteError(ProviderError):
    """A service could not be used. `passing` tells that it may work again without anybody doing something."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class DnsConflict(RemoteError):
    """A record set already holds values that are not ours."""


class GateFailed(ProviderError):
    """A gate did not pass."""


class InitFailed(ProviderError):
    """Something was made but not finished. The engine keeps `outputs` and calls update on the next up."""

    def __init__(self, message: str, resource_id: str, outputs: dict[str, Any]) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.outputs = outputs
