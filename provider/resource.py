"""What a resource type is, and what it is given to work with.

A type's module documents its life cycle, and what a kill at any moment leads to. The rule behind all of them: a side
effect can be found again from the inputs and the URN alone, because the state may never have been written.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.inputs import Inputs, Problem
from metal_ipi.provider.status import Status

Values = Mapping[str, Any]
"""Plain property values by wire name, see `provider.values`."""
Kind = Literal["add", "delete", "update"]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What an operation on one resource may use."""

    urn: str
    settings: Settings
    status: Status
    given_up: bool = False
    """Of a deletion: whether an update deletes it because the program does not have it, or not any more as it was; in a
    destroy, which takes everything away, nothing is."""

    @property
    def name(self) -> str:
        """The resource's name."""
        return self.urn.rsplit("::", 1)[-1]

    @property
    def identity(self) -> str:
        """16 hexadecimal digits that stand for the resource, for types whose ids come from nowhere else."""
        return hashlib.sha256(self.urn.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The difference between a resource's state and its new inputs, by property path."""

    changes: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    replaces: frozenset[str] = frozenset()
    """Those of the paths which cannot be changed in place."""
    warning: str = ""
    """What the user is to know, whether anything is changed or not."""


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
    """Its inputs, as they are declared."""
    hidden_inputs: ClassVar[frozenset[str]] = frozenset()
    """Inputs which are left out of the outputs, because they are large or secret. With what is old, all operations get
    them all the same."""

    found_by_inputs: ClassVar[bool] = False
    """Whether `delete` finds all that there may be by `Context.identity` and the inputs: where a creation was killed,
    nothing is to be made in order to be found."""

    def check(self, inputs: Values) -> list[Problem]:
        """All problems of the inputs; does no I/O."""
        return self.inputs.problems(inputs)

    @abstractmethod
    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        """What an update would change; does no I/O. `old` holds inputs and outputs of the state."""

    @abstractmethod
    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        """The outputs as far as they can be told without I/O; UNKNOWN for the others."""

    @abstractmethod
    async def create(self, context: Context, inputs: Values) -> Made:
        """Makes it. May find that an earlier, killed run made it already."""

    @abstractmethod
    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        """Changes it and answers the new outputs. Also called after an `InitFailed`, to go on from there."""

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        """What is really there: changed properties (inputs included), or None when it is gone."""
        return {}

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        """Removes it. Finding nothing is fine. Of types that are in the state only, nothing is to be removed."""
        return


def time_now() -> str:
    """The time as outputs tell it: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def simple_changes(old: Values, new: Values, keys: tuple[str, ...], replace: frozenset[str] = frozenset()) -> Changes:
    """Compares whole properties."""
    changes: dict[str, Kind] = {}
    for key in keys:
        if old.get(key) is None and new.get(key) is not None:
            changes[key] = "add"
        elif old.get(key) is not None and new.get(key) is None:
            changes[key] = "delete"
        elif old.get(key) != new.get(key):
            changes[key] = "update"
    return Changes(changes=changes, replaces=replace & changes.keys())
