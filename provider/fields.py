"""Reads untyped input maps into typed values and collects every problem, so that all are reported at once.

Values a preview does not know yet pass: the reader answers a neutral value and no problem. So the same `parse` function
serves check, with unknown values, and create, without.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from provider.errors import InvalidInputs
from provider.forms import PLACEHOLDER
from provider.inputs import Problem
from provider.values import Unknown


class Reader:
    """Reads the members of one map."""

    def __init__(self, values: Mapping[str, Any], path: str = "", problems: list[Problem] | None = None) -> None:
        self.values = values
        self.path = path
        self.problems: list[Problem] = [] if problems is None else problems

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def fail(self, key: str, reason: str) -> None:
        """Notes a problem with a member."""
        self.problems.append(Problem(path=self._at(key) if key else self.path, reason=reason))

    def unknown(self, key: str) -> bool:
        """Whether the member is not known yet."""
        return isinstance(self.values.get(key), Unknown)

    def _get(self, key: str, *, required: bool) -> Any:
        """The value, or None when absent, unknown or (for a required one) already reported."""
        value = self.values.get(key)
        if value is None and required:
            self.fail(key, "is required")
        return None if isinstance(value, Unknown) else value

    def text(self, key: str, *, pattern: str | None = None, what: str = "", default: str | None = None) -> str:
        """A non-empty string; `what` describes what `pattern` wants."""
        value = self._get(key, required=default is None)
        if value is None:
            return default or ""
        if not isinstance(value, str) or not value:
            self.fail(key, f"must be a non-empty string, not {_shown(value)}")
            return ""
        if pattern and value != PLACEHOLDER and not re.fullmatch(pattern, value, re.DOTALL):
            self.fail(key, f"must be {what}")
        return value

    def optional_text(self, key: str, *, pattern: str | None = None, what: str = "") -> str | None:
        """A non-empty string, or nothing."""
        if self.values.get(key) is None or self.unknown(key):
            return None
        return self.text(key, pattern=pattern, what=what)

    def number(self, key: str, *, default: float | None = None, minimum: float = 0, maximum: float = 1e9) -> float:
        """A number within bounds, both included."""
        value = self._get(key, required=default is None)
        if value is None or value == PLACEHOLDER:
            return minimum if default is None else default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(key, f"must be a number, not {_shown(value)}")
            return minimum
        if not minimum <= value <= maximum:
            self.fail(key, f"must be between {minimum:g} and {maximum:g}, not {value:g}")
        return float(value)

    def boolean(self, key: str, *, default: bool = False) -> bool:
        """True or false."""
        value = self._get(key, required=False)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fail(key, f"must be true or false, not {_shown(value)}")
            return default
        return value

    def texts(self, key: str, *, required: bool = True, pattern: str | None = None, what: str = "") -> tuple[str, ...]:
        """A list of strings, not empty when required. Unknown members are left out."""
        value = self._get(key, required=required)
        if value is None:
            return ()
        if not isinstance(value, Sequence) or isinstance(value, str) or (required and not value):
            self.fail(key, "must be a non-empty list of strings" if required else "must be a list of strings")
            return ()
        members = [Reader({"": item}, f"{self._at(key)}[{index}]", self.problems) for index, item in enumerate(value)]
        return tuple(
            member.text("", pattern=pattern, what=what)
            for member, item in zip(members, value, strict=True)
            if not isinstance(item, Unknown)
        )

    def mapping(self, key: str, *, required: bool = True) -> dict[str, Any]:
        """A map; its values are the caller's to read."""
        value = self._get(key, required=required)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.fail(key, f"must be a map, not {_shown(value)}")
            return {}
        return dict(value)

    def section(self, key: str, *, required: bool = True) -> Reader:
        """A reader for a nested map."""
        return Reader(self.mapping(key, required=required), self._at(key), self.problems)

    def sections(self, key: str, *, required: bool = True) -> list[Reader]:
        """Readers for a list of maps. Unknown members are left out."""
        value = self._get(key, required=required)
        if value is None:
            return []
        if not isinstance(value, Sequence) or isinstance(value, str):
            self.fail(key, f"must be a list, not {_shown(value)}")
            return []
        readers: list[Reader] = []
        for index, item in enumerate(value):
            path = f"{self._at(key)}[{index}]"
            if isinstance(item, Mapping):
                readers.append(Reader(item, path, self.problems))
            elif not isinstance(item, Unknown):
                self.problems.append(Problem(path=path, reason=f"must be a map, not {_shown(item)}"))
        return readers

    def only(self, *known: str) -> None:
        """Refuses members that do not exist, naming the nearest one that does."""
        for key in self.values:
            if key in known or key.startswith("__"):
                continue
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known) or 'none'}"
            self.fail(key, f"is not known; {hint}")

    def raise_problems(self) -> None:
        """For create and update, where check has let unknown values pass."""
        if self.problems:
            raise InvalidInputs("; ".join(f"{problem.path} {problem.reason}" for problem in self.problems))


def _shown(value: Any) -> str:
    """The kind of a wrong value. Never the value: it may be a secret in the wrong place."""
    if value == "":
        return "an empty string"
    names = {str: "a string", bool: "a boolean", float: "a number", int: "a number", list: "a list", dict: "a map"}
    return names.get(type(value), type(value).__name__)


HOST_NAME = r"[A-Za-z0-9_*]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?)*"
"""A DNS name without trailing dot; a leading `*` label is allowed."""
SHORT_NAME = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
"""A machine's name: one label."""
IPV4 = r"(\d{1,3}\.){3}\d{1,3}"
"""Looks like an IPv4 address."""
URI = r"[a-z][a-z0-9+.-]*://\S*"
URL = r"https?://[^\s/]+(/\S*)?"
"""An http or https URL."""
PEM = r"\s*-----BEGIN [A-Z0-9 ]+-----.*"
"""Something in PEM."""
SSH_KEY = r"(ssh|ecdsa)-[a-z0-9-]+ [A-Za-z0-9+/=]+( .*)?\s*"
"""An SSH public key, one line."""
SHA256 = r"[0-9a-f]{64}"
"""A SHA-256 in hexadecimal digits."""
FILE_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
"""A plain file name: no path, not hidden."""
