"""The types of rules and of their input: plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

REHEARSAL: Final = "rehearsal"
"""In the configuration of a rehearsal, this text replaces encrypted values, which cannot be decrypted there."""


class Unknown:
    """A value that a preview does not know yet."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


class SecretText(str):
    """A text that is marked as secret. It must never appear in a message."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource: its inputs, or in a stack rule its future outputs."""

    urn: str
    type: str
    name: str
    properties: Mapping[str, Any]
    """Plain values; `UNKNOWN` for values that a preview does not know."""
    protected: bool = False

    def text(self, name: str) -> str:
        """A text property; empty if it is missing, unknown or no text."""
        value = self.properties.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a rule gets in addition to its resources."""

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The rule's own parameters, from the policy configuration."""
    configuration: Mapping[str, str] = field(default_factory=dict[str, str])
    """The stack's configuration as the engine passes it: objects are JSON."""
    secret_keys: frozenset[str] = frozenset()
    """The configuration keys whose value is encrypted, completely or in part."""
    before: Callable[[], Sequence[Resource]] = tuple
    """Reads the stack's state before the change. Called only by rules that need it."""


@dataclass(frozen=True)
class Found:
    """A violation: what is wrong, and what to change."""

    message: str
    urn: str | None = None
    """The resource with the violation. Ignored for resource rules, which check one resource at a time."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of the pack. Exactly one of `resource` and `stack` is set."""

    name: str
    description: str
    """One sentence that says what the rule requires."""
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """JSON schema of each parameter; `default` is used if the configuration does not set it."""
    resource: Callable[[Resource, Given], Iterable[str]] | None = None
    """Yields messages about one resource, before anything is done with it."""
    stack: Callable[[Sequence[Resource], Given], Iterable[Found]] | None = None
    """Yields violations of the stack as it will be."""

    def parameter(self, given: Given, name: str) -> Any:
        """The value of a parameter, or its default."""
        return given.parameters.get(name, self.parameters[name].get("default"))


def strings(value: object) -> list[str]:
    """The known texts in a list; empty for anything that is not a list."""
    return [each for each in listed(value) if isinstance(each, str)]


def listed(value: object) -> list[Any]:
    """The list itself; an empty list for anything else."""
    return list(cast("list[Any]", value)) if isinstance(value, list) else []


def mapping(value: object) -> dict[str, Any]:
    """The mapping itself; an empty one for anything else."""
    return dict(cast("dict[str, Any]", value)) if isinstance(value, dict) else {}


def walk(value: object, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yields every value below `value` that is neither list nor mapping: its path, its own name, and the value."""
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from walk(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield from walk(inner, f"{path}[{number}]")
    else:
        yield path, path.rpartition(".")[2], value
