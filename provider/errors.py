"""The errors of the provider.

ProviderError              an error for the user: what went wrong, where, and what to do
├── InvalidInputs          an input that was found wrong only during the work
├── RemoteError            a service refused, or did not answer
│   ├── DnsConflict        a record set has values of another owner
│   └── Throttled          a service asks for a pause between requests (provider.dns_services)
├── GateFailed             a gate timed out, or saw a cause that waiting cannot cure
└── InitFailed             something was made but not finished; carries the state to keep
"""

from __future__ import annotations

from typing import Any


class ProviderError(Exception):
    """An error for the user, shown without a traceback. Its message contains no secret."""


class InvalidInputs(ProviderError):
    """An input is wrong."""


class RemoteError(ProviderError):
    """A service could not be used. `passing`: the error is transient, so a retry may succeed."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class DnsConflict(RemoteError):
    """A record set has values of another owner already."""


class GateFailed(ProviderError):
    """A gate did not pass."""


class InitFailed(ProviderError):
    """Something was made but not finished. The engine keeps `outputs`, and calls update on the next up."""

    def __init__(self, message: str, resource_id: str, outputs: dict[str, Any]) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.outputs = outputs
