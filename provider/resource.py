"""The interface of a resource type, and what its operations get.

The module of each type documents its life cycle, and what happens if it is killed at any moment. One rule holds for all
types: a side effect must be found again from the inputs and the URN alone, because the state may never have been
written.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.inputs import Inputs, Problem
from metal_ipi.provider.status import Status

Values = Mapping[str, Any]
"""Plain property values by their names on the wire, see `provider.values`."""
Kind = Literal["add", "delete", "update"]


async def at_once(hostname: str) -> str:
    """Has no node wait before it is taken out of service."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Context:
    """What an operation on one resource can use."""

    urn: str
    settings: Settings
    status: Status
    given_up: bool = False
    """For a deletion: true if an update deletes the resource, because the program no longer has it or replaces it;
    false in a destroy, which removes everything."""
    may_leave: Callable[[str], Awaitable[str]] = at_once
    """Asked, with its host name, before a node of a cluster that stays is taken out of service. Answers why it has to
    wait, because of machines of other clusters; empty: it may go."""

    @property
    def name(self) -> str:
        """The name of the resource."""
        return self.urn.rsplit("::", 1)[-1]

    @property
    def identity(self) -> str:
        """16 hexadecimal digits that identify the resource, for types that have no other source of an id."""
        return hashlib.sha256(self.urn.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The difference between a resource's state and its new inputs, by property path."""

    changes: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    replaces: frozenset[str] = frozenset()
    """The changed paths that require a replacement."""
    warning: str = ""
    """A warning for the user, whether anything changes or not."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """A resource after its creation."""

    id: str
    outputs: Values


class ResourceType(ABC):
    """One type of resource. `outputs` are the computed properties only: the plugin adds the inputs to the state."""

    token: ClassVar[str]
    """`metal-ipi:index:<Class>`."""
    inputs: ClassVar[type[Inputs]]
    """The class that declares its inputs."""
    hidden_inputs: ClassVar[frozenset[str]] = frozenset()
    """Inputs that are not stored in the outputs, because they are large or secret. Operations still get them as part of
    the old values."""

    found_by_inputs: ClassVar[bool] = False
    """Whether `delete` can find everything from `Context.identity` and the inputs. Then a create that was killed needs
    no second create before the deletion."""

    def check(self, inputs: Values) -> list[Problem]:
        """Returns all problems of the inputs; does no I/O."""
        return self.inputs.problems(inputs)

    @abstractmethod
    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        """What an update would change; does no I/O. `old` has the inputs and outputs of the state."""

    @abstractmethod
    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        """The outputs that are known without I/O; UNKNOWN for the others."""

    @abstractmethod
    async def create(self, context: Context, inputs: Values) -> Made:
        """Creates the resource. An earlier run that was killed may have created it already."""

    @abstractmethod
    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        """Changes the resource and returns the new outputs. Also called after an `InitFailed`, to finish the
        creation."""

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        """Reads the real state: the changed properties (inputs included), or None if the resource is gone."""
        return {}

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        """Removes the resource. It is not an error if nothing is there. The default does nothing, for types that
        exist in the state only."""
        return


def time_now() -> str:
    """The current time in the format of outputs: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def simple_changes(old: Values, new: Values, keys: tuple[str, ...], replace: frozenset[str] = frozenset()) -> Changes:
    """Compares the given properties as whole values.

    Args:
        keys: names of the properties to compare.
        replace: those of them whose change requires a replacement.
    """
    changes: dict[str, Kind] = {}
    for key in keys:
        if old.get(key) is None and new.get(key) is not None:
            changes[key] = "add"
        elif old.get(key) is not None and new.get(key) is None:
            changes[key] = "delete"
        elif old.get(key) != new.get(key):
            changes[key] = "update"
    return Changes(changes=changes, replaces=replace & changes.keys())
