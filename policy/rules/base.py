"""What a rule is, and what it is asked about: plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

REHEARSAL: Final = "rehearsal"
"""Stands in a rehearsal's configuration for what is encrypted, and cannot be decrypted there."""


class Unknown:
    """A value that a preview does not know."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


class SecretText(str):
    """A text that is marked as secret; its value never stands in a message."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource: what was asked for (inputs), or in a stack rule what there will be (outputs)."""

    urn: str
    type: str
    name: str
    properties: Mapping[str, Any]
    """Plain values; `UNKNOWN` where a preview cannot tell."""
    protected: bool = False

    def text(self, name: str) -> str:
        """A property that is text; empty where there is none, or it is not known."""
        value = self.properties.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a rule has beside its resources."""

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The rule's own, from the policy configuration."""
    configuration: Mapping[str, str] = field(default_factory=dict[str, str])
    """The stack's, as the engine has it: objects are JSON."""
    secret_keys: frozenset[str] = frozenset()
    """Its keys that are encrypted, wholly or in part."""
    before: Callable[[], Sequence[Resource]] = tuple
    """What the stack holds until now; asked for only by who needs it."""


@dataclass(frozen=True)
class Found:
    """A violation: what is wrong, and what to change."""

    message: str
    urn: str | None = None
    """The resource that it is about; in a resource rule always the one that was asked about."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of the pack; exactly one of `resource` and `stack` is given."""

    name: str
    description: str
    """One sentence: what must be so."""
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """JSON schema of each parameter; `default` says what holds where the configuration says nothing."""
    resource: Callable[[Resource, Given], Iterable[str]] | None = None
    """Messages about one resource, before anything is done with it."""
    stack: Callable[[Sequence[Resource], Given], Iterable[Found]] | None = None
    """Violations of the stack as it will be."""

    def parameter(self, given: Given, name: str) -> Any:
        """A parameter's value, or its default."""
        return given.parameters.get(name, self.parameters[name].get("default"))


def strings(value: object) -> list[str]:
    """The known texts of a list; nothing of what is no list."""
    return [each for each in listed(value) if isinstance(each, str)]


def listed(value: object) -> list[Any]:
    """A list as it is, and an empty one for anything else."""
    return list(cast("list[Any]", value)) if isinstance(value, list) else []


def mapping(value: object) -> dict[str, Any]:
    """A mapping as it is, and an empty one for anything else."""
    return dict(cast("dict[str, Any]", value)) if isinstance(value, dict) else {}


def walk(value: object, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every value below `value` that is neither list nor mapping: its path, the last name in it, and itself."""
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from walk(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield from walk(inner, f"{path}[{number}]")
    else:
        yield path, path.rpartition(".")[2], value
