"""What was taken over, from where, and what was not, and why."""

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
"""What no setting in clear may have in it: a URL's account with its password, a key."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A value of a file."""

    document: Document
    where: str

    @property
    def value(self) -> Any:
        """What stands there; None where nothing does."""
        return self.document.at(self.where)

    @property
    def text(self) -> str:
        """The same as a text, which Go's reader makes of a number; empty where nothing stands there."""
        return "" if self.value is None else str(self.value).strip()

    def below(self, name: str) -> Place:
        """A value in it."""
        return Place(document=self.document, where=f"{self.where}.{name}" if self.where else name)

    @property
    def items(self) -> list[Place]:
        """The items of a list."""
        found = cast("list[Any]", self.value) if is_list(self.value) else []
        return [Place(document=self.document, where=f"{self.where}[{number}]") for number in range(len(found))]

    @property
    def line(self) -> int:
        """Where it begins; of what is missing, where that begins that it is missing in."""
        where = self.where
        while where and where not in self.document.lines:
            where = where[: max(where.rfind("."), where.rfind("["), 0)]
        return self.document.lines.get(where, 1)

    def __str__(self) -> str:
        return f"{self.document.name}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Told:
    """What was not taken over, and what to do instead."""

    place: Place
    why: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What neither file says."""

    setting: str
    value: str
    why: str


@dataclass(kw_only=True)
class Taking:
    """The settings, as far as they are."""

    settings: Tree = field(default_factory=dict[str, Any])
    """By their names in a stack file; no secrets."""
    secrets: dict[str, Place] = field(default_factory=dict[str, Place])
    """By path, where the secret stands."""
    sources: dict[str, Place] = field(default_factory=dict[str, Place])
    """By path of a setting, where it is from."""
    told: list[Told] = field(default_factory=list[Told])
    chosen: list[Chosen] = field(default_factory=list[Chosen])
    taken: int = 0
    """How many fields were taken over as they are."""
    _done: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    _told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def put(self, setting: str, value: Any, *places: Place) -> None:
        """Set a setting (`platform.servers[0].name`); `places` are what it is made of. A secret is told instead."""
        if _SECRET.search(str(value)):
            for place in places:
                self.tell(place, "a password or a private key is in it", f"set metal-ipi:{setting} to what has none")
            return
        put(self.settings, setting, value)
        self.done(*places)
        if places:
            self.sources[setting] = places[0]

    def secret(self, setting: str, place: Place) -> None:
        """A setting that must not stand in a file in clear."""
        self.secrets[setting] = place
        self.done(place)

    def tell(self, place: Place, why: str, remedy: str = "nothing to do", *, of: Place | None = None) -> None:
        """Say that a value is not taken over, or not as it is; `of` is the field that it is a part of."""
        self.told.append(Told(place=place, why=why, remedy=remedy))
        field = of or place
        self._told.add((field.document.name, field.where))
        self.done(field)

    def choose(self, setting: str, value: Any, why: str) -> None:
        """Set what neither file says; a person should look at it."""
        put(self.settings, setting, value)
        self.chosen.append(Chosen(setting=setting, value=_shown(value), why=why))

    def done(self, *places: Place) -> None:
        """Nothing more is to be said of these."""
        self._done |= {(place.document.name, place.where) for place in places}

    def rest(self, document: Document, fields: Mapping[str, Field]) -> None:
        """Take over what becomes a setting as it is, and tell of everything that nobody took."""
        for place, known in _leaves(Place(document=document, where=""), fields):
            if not self.is_done(place):
                self._left(
                    place, known or Field(why="openshift-install 4.19 has no such field", remedy=_meant(place, fields))
                )
            self.taken += not self._is_told(place)

    def _left(self, place: Place, known: Field) -> None:
        """What nobody took."""
        value = str(place.value) if known.kind == "text" else place.value
        if value in known.same:
            self.done(place)
        elif known.setting:
            numbers = re.findall(r"\[\d+\]", place.where)
            self.put(re.sub(r"\[\]", lambda _, left=numbers: left.pop(0), known.setting), value, place)
        else:
            self.tell(
                place,
                known.why or "nothing here takes it",
                known.remedy or "set it in the stack file by hand, if it matters",
            )

    def is_done(self, place: Place) -> bool:
        """Whether it was taken over, or it or what it stands in was told."""
        return (place.document.name, place.where) in self._done or self._is_told(place)

    def _is_told(self, place: Place) -> bool:
        above = (place.where[: found.start()] for found in re.finditer(r"[.\[]", place.where))
        return any((place.document.name, where) in self._told for where in (place.where, *above))

    def source(self, setting: str) -> Place | None:
        """Where a setting is from, what it stands in, or the first of what stands in it."""
        found = [setting, *(name for name in self.sources if setting.startswith((f"{name}.", f"{name}[")))]
        found += [name for name in self.sources if name.startswith(f"{setting}.")]
        return next((self.sources[name] for name in found if name in self.sources), None)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def put(tree: Tree, setting: str, value: Any) -> None:
    """Set a setting in a tree; lists grow item by item."""
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
    """Raises StackError with all values that are of another kind than the installer wants."""
    wrong = [
        f"line {document.lines[place.where]}: {place.where} must be {_KINDS.get(known.kind) or 'a mapping or a list'}"
        for place, known in _leaves(Place(document=document, where=""), fields)
        if known is not None and not _is(place.value, known.kind)
    ]
    if wrong:
        raise unreadable(document.path, *wrong)


def _leaves(place: Place, fields: Mapping[str, Field]) -> Iterator[tuple[Place, Field | None]]:
    """Every field that is given, and what is known of it; empty ones mean that nothing is."""
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
    """What stands where fields stand below: mappings and lists."""
    found: dict[str, type] = {"": dict}
    for name in fields:
        ends = [each.start() for each in re.finditer(r"[.\[]", name)]
        found |= {name[:end]: dict if name[end] == "." else list for end in ends}
    return found


def _is_empty(value: Any) -> bool:
    inner = list(cast(Tree, value).values()) if isinstance(value, dict) else value if is_list(value) else None
    return value in (None, "") if inner is None else all(map(_is_empty, cast("list[Any]", inner)))


def _is(value: Any, kind: Kind) -> bool:
    """Go's reader takes a number where a text is wanted."""
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
