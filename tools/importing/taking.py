"""Records which values were converted, from where, and which were not, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, cast

from metal_ipi.stacks.problems import nearest
from tools.importing.documents import Document, Tree, is_list, parts, unreadable
from tools.importing.fields import Field, Kind

_KINDS: Mapping[Kind, str] = {
    **{"text": "a text", "number": "a whole number", "flag": "true or false", "texts": "a list of texts"},
}

_SECRET = re.compile(r"//[^/\s@]*:[^/\s@]*@|PRIVATE KEY")
"""Texts that must not be in a setting that is not secret: a URL with a password, a private key."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place in a file, with the value there."""

    document: Document
    where: str

    @property
    def value(self) -> Any:
        """The value; None if there is none."""
        return self.document.at(self.where)

    @property
    def text(self) -> str:
        """The value as a text; empty if there is none. Go's YAML reader also accepts a number for a text."""
        return "" if self.value is None else str(self.value).strip()

    def below(self, name: str) -> Place:
        """The place of a field in this value."""
        return Place(document=self.document, where=f"{self.where}.{name}" if self.where else name)

    @property
    def items(self) -> list[Place]:
        """The items of a list."""
        found = cast("list[Any]", self.value) if is_list(self.value) else []
        return [Place(document=self.document, where=f"{self.where}[{number}]") for number in range(len(found))]

    @property
    def line(self) -> int:
        """Line number of the value; for a missing value that of the enclosing one."""
        where = self.where
        while where and where not in self.document.lines:
            where = where[: max(where.rfind("."), where.rfind("["), 0)]
        return self.document.lines.get(where, 1)

    def __str__(self) -> str:
        return f"{self.document.name}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Told:
    """A value that was not converted, with the reason and what to do instead."""

    place: Place
    why: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A setting that neither file contains."""

    setting: str
    value: str
    why: str


@dataclass(kw_only=True)
class Taking:
    """The settings so far."""

    settings: Tree = field(default_factory=dict[str, Any])
    """By their names in a stack file; without secrets."""
    secrets: dict[str, Place] = field(default_factory=dict[str, Place])
    """Path of a secret setting to the place of its value."""
    sources: dict[str, Place] = field(default_factory=dict[str, Place])
    """Path of a setting to the place that it comes from."""
    told: list[Told] = field(default_factory=list[Told])
    chosen: list[Chosen] = field(default_factory=list[Chosen])
    taken: int = 0
    """Number of fields that were taken unchanged."""
    _done: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    _told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def put(self, setting: str, value: Any, *places: Place) -> None:
        """Sets a setting (`platform.servers[0].name`). `places` are the fields it comes from. A value with a secret is
        reported instead."""
        if _SECRET.search(str(value)):
            for place in places:
                self.tell(
                    place, "it contains a password or a private key", f"set metal-ipi:{setting} to a value without one"
                )
            return
        put(self.settings, setting, value)
        self.done(*places)
        if places:
            self.sources[setting] = places[0]

    def secret(self, setting: str, place: Place) -> None:
        """Records a setting whose value must not be in a file in clear."""
        self.secrets[setting] = place
        self.done(place)

    def tell(self, place: Place, why: str, remedy: str = "nothing to do", *, of: Place | None = None) -> None:
        """Reports a value that is not converted, or only in part. `of` is the field that contains it."""
        self.told.append(Told(place=place, why=why, remedy=remedy))
        field = of or place
        self._told.add((field.document.name, field.where))
        self.done(field)

    def choose(self, setting: str, value: Any, why: str) -> None:
        """Sets a value that neither file contains; the user should check it."""
        put(self.settings, setting, value)
        self.chosen.append(Chosen(setting=setting, value=_shown(value), why=why))

    def done(self, *places: Place) -> None:
        """Marks fields as handled."""
        self._done |= {(place.document.name, place.where) for place in places}

    def rest(self, document: Document, fields: Mapping[str, Field]) -> None:
        """Converts the fields that become a setting unchanged, and reports all that are not handled."""
        for place, known in _leaves(Place(document=document, where=""), fields):
            if not self.is_done(place):
                self._left(
                    place, known or Field(why="openshift-install 4.19 has no such field", remedy=_meant(place, fields))
                )
            self.taken += not self._is_told(place)

    def _left(self, place: Place, known: Field) -> None:
        """Handles one field that no function has handled."""
        value = str(place.value) if known.kind == "text" else place.value
        if value in known.same:
            self.done(place)
        elif known.setting:
            numbers = re.findall(r"\[\d+\]", place.where)
            self.put(re.sub(r"\[\]", lambda _, left=numbers: left.pop(0), known.setting), value, place)
        else:
            self.tell(
                place,
                known.why or "there is no setting for it",
                known.remedy or "set it in the stack file by hand, if it matters",
            )

    def is_done(self, place: Place) -> bool:
        """Whether the field was converted, or it or an enclosing one was reported."""
        return (place.document.name, place.where) in self._done or self._is_told(place)

    def _is_told(self, place: Place) -> bool:
        above = (place.where[: found.start()] for found in re.finditer(r"[.\[]", place.where))
        return any((place.document.name, where) in self._told for where in (place.where, *above))

    def source(self, setting: str) -> Place | None:
        """The place a setting comes from: its own, that of an enclosing setting, or the first one of a setting inside
        it."""
        found = [setting, *(name for name in self.sources if setting.startswith((f"{name}.", f"{name}[")))]
        found += [name for name in self.sources if name.startswith(f"{setting}.")]
        return next((self.sources[name] for name in found if name in self.sources), None)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def put(tree: Tree, setting: str, value: Any) -> None:
    """Sets a setting in a tree; lists grow as needed."""
    way = parts(setting)
    found: Any = tree
    for part, following in pairwise(way):
        if isinstance(part, int):
            while len(found) <= part:
                found.append({})
            found = found[part]
        else:
            found = found.setdefault(part, [] if isinstance(following, int) else {})
    found[way[-1]] = value


def check(document: Document, fields: Mapping[str, Field]) -> None:
    """Raises StackError with all values of a wrong type."""
    wrong = [
        f"line {document.lines[place.where]}: {place.where} must be {_KINDS.get(known.kind) or 'a mapping or a list'}"
        for place, known in _leaves(Place(document=document, where=""), fields)
        if known is not None and not _is(place.value, known.kind)
    ]
    if wrong:
        raise unreadable(document.path, *wrong)


def _leaves(place: Place, fields: Mapping[str, Field]) -> Iterator[tuple[Place, Field | None]]:
    """Yields every field with a value, and its entry in `fields` (None for an unknown field). Empty values are
    skipped."""
    value, where = place.value, re.sub(r"\[\d+\]", "[]", place.where)
    wanted = _sections(tuple(fields)).get(where)
    if isinstance(value, dict) and wanted is dict:
        for name in cast(Tree, value):
            yield from _leaves(place.below(name), fields)
    elif is_list(value) and wanted is list:
        for each in place.items:
            yield from _leaves(each, fields)
    elif not _is_empty(value):
        yield place, fields.get(where) if wanted is None else Field(kind="section")


@cache
def _sections(fields: tuple[str, ...]) -> Mapping[str, type]:
    """Path of each enclosing value to its type, dict or list."""
    found: dict[str, type] = {"": dict}
    for name in fields:
        ends = [each.start() for each in re.finditer(r"[.\[]", name)]
        found |= {name[:end]: dict if name[end] == "." else list for end in ends}
    return found


def _is_empty(value: Any) -> bool:
    inner = list(cast(Tree, value).values()) if isinstance(value, dict) else value if is_list(value) else None
    return value in (None, "") if inner is None else all(map(_is_empty, cast("list[Any]", inner)))


def _is(value: Any, kind: Kind) -> bool:
    """Whether a value has the type. Go's YAML reader accepts a number for a text."""
    if kind == "texts":
        return is_list(value) and all(_is(each, "text") for each in cast("list[Any]", value))
    if kind in ("flag", "any", "section"):
        return kind == "any" or (kind == "flag" and isinstance(value, bool))
    return not isinstance(value, bool) and isinstance(value, int if kind == "number" else (str, int))


def _meant(place: Place, fields: Mapping[str, Field]) -> str:
    above, _, name = re.sub(r"\[\d+\]", "[]", place.where).rpartition(".")
    within = f"{above}." if above else ""
    beside = {re.split(r"[.\[]", each.removeprefix(within))[0] for each in fields if each.startswith(within)}
    guess = nearest(name, beside)
    return f"did you mean '{guess}'?" if guess else "if your release has it, set it in installConfig.other"
