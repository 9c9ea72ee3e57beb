"""The saved tables: records by id, found by what they are indexed by, noticed when they change.

A kind of record is a dataclass below `Record` that `saved` registers, once, beside its definition: that is all it needs
to be kept over a restart. Records change by assignment of whole fields; what happens inside of a list or of a mapping
is not noticed, so these are replaced, not changed.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, MutableMapping, ValuesView
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar, cast

from lab.metal_api.exceptions import NotFound

Json = dict[str, Any]


class Record:
    """Base of everything that is saved."""

    id: str
    TABLE: ClassVar[str]
    INDEXED: ClassVar[tuple[str, ...]]

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        table = self.__dict__.get("_table")
        if table is not None:
            table.noticed(self)

    def change(self, values: Json, now: str) -> None:
        """Set the fields that have a value, and when that was (`updated_at`)."""
        for name, value in {**values, "updated_at": now}.items():
            if value is not None:
                setattr(self, name, value)


R = TypeVar("R", bound=Record)
_kinds: dict[str, type[Record]] = {}


def saved(table: str, *, indexed: tuple[str, ...] = ()) -> Callable[[type[R]], type[R]]:
    """Register a kind under the name of its table. `indexed` are attributes: a text, None for no entry, or a list."""

    def register(kind: type[R]) -> type[R]:
        if table in _kinds:
            raise TypeError(f"two kinds of records are saved as {table}: {_kinds[table].__name__}, {kind.__name__}")
        kind.TABLE, kind.INDEXED = table, indexed
        _kinds[table] = kind
        return kind

    return register


class Table(MutableMapping[str, R], Generic[R]):
    """Records of one kind by id, in the order in which they were made."""

    def __init__(self, kind: type[R], touched: Callable[[str, str], None]) -> None:
        self._kind = kind
        self._touched = touched
        self._records: dict[str, R] = {}
        self._index: dict[str, dict[str, dict[str, None]]] = {name: {} for name in kind.INDEXED}
        self._entries: dict[str, set[tuple[str, str]]] = {}

    def __getitem__(self, identity: str) -> R:
        return self._records[identity]

    def __setitem__(self, identity: str, record: R) -> None:
        if identity in self._records:
            del self[identity]
        self._records[identity] = record
        object.__setattr__(record, "_table", self)
        self.noticed(record)

    def __delitem__(self, identity: str) -> None:
        object.__setattr__(self._records.pop(identity), "_table", None)
        for name, key in self._entries.pop(identity):
            del self._index[name][key][identity]
        self._touched(self._kind.TABLE, identity)

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def values(self) -> ValuesView[R]:
        """All records, oldest first."""
        return self._records.values()

    def add(self, record: R) -> R:
        """Take a record in."""
        self[record.id] = record
        return record

    def find(self, identity: str) -> R:
        """By id, or NotFound."""
        try:
            return self._records[identity]
        except KeyError:
            raise NotFound from None

    def where(self, name: str, key: str) -> list[R]:
        """The records with this value in an indexed attribute, in the order in which they got it."""
        return [self._records[identity] for identity in self._index[name].get(key, ())]

    def keys_of(self, name: str) -> list[str]:
        """The values that an indexed attribute has in any record."""
        return [key for key, records in self._index[name].items() if records]

    def has(self, name: str, key: str) -> bool:
        """Whether any record has this value in an indexed attribute."""
        return bool(self._index[name].get(key))

    def noticed(self, record: R) -> None:
        """Bring the indexes up to date with a record that has changed, and have it saved."""
        now = {(name, key) for name in self._index for key in _keys(getattr(record, name))}
        before = self._entries.get(record.id, set())
        for name, key in before - now:
            del self._index[name][key][record.id]
        for name, key in now - before:
            self._index[name].setdefault(key, {})[record.id] = None
        self._entries[record.id] = now
        self._touched(self._kind.TABLE, record.id)


def _keys(value: object) -> list[str]:
    if value is None:
        return []
    return cast("list[str]", value) if isinstance(value, list) else [str(value)]


class Tables:
    """One table of every registered kind."""

    def __init__(self) -> None:
        self.touched: Callable[[], None] = lambda: None
        """Called after every change; the store hooks in here."""
        self._dirty: dict[tuple[str, str], None] = {}
        self._tables: dict[str, Table[Any]] = {}

    def table(self, kind: type[R]) -> Table[R]:
        """The table of a kind."""
        found = self._tables.get(kind.TABLE)
        if found is None:
            found = self._tables[kind.TABLE] = Table(kind, self._note)
        return found

    def _note(self, table: str, identity: str) -> None:
        self._dirty[table, identity] = None
        self.touched()

    def changes(self) -> list[list[Any]]:
        """What changed since the last call: table, id, and the record as JSON or None where it is gone."""
        dirty, self._dirty = self._dirty, {}
        return [[table, identity, self._document(table, identity)] for table, identity in dirty]

    def everything(self) -> Iterator[list[Any]]:
        """All records, as `changes` writes them."""
        self._dirty = {}
        for name, table in self._tables.items():
            for identity, record in table.items():
                yield [name, identity, to_json(record)]

    def restore(self, tables: dict[str, dict[str, Json]]) -> None:
        """Take over records by table and id; a table or a field that is not known is an error."""
        unknown = tables.keys() - _kinds.keys()
        if unknown:
            raise ValueError(f"the saved state has records that nobody knows: {', '.join(sorted(unknown))}")
        for name, records in tables.items():
            for document in records.values():
                self.table(_kinds[name]).add(from_json(_kinds[name], document))

    def _document(self, table: str, identity: str) -> Json | None:
        record = self._tables[table].get(identity)
        return None if record is None else to_json(record)


def to_json(record: Any) -> Json:
    """A record as JSON; other dataclasses in it as well."""
    return {entry.name: _plain(getattr(record, entry.name)) for entry in fields(record)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return to_json(value)
    return [_plain(entry) for entry in cast("list[Any]", value)] if isinstance(value, list) else value


def from_json(kind: type[R], document: Json) -> R:
    """A record from the JSON `to_json` made; keys it does not know are an error, not ignored."""
    return _built(kind, document)


def _built(kind: Any, document: Json) -> Any:
    inner = _inner(kind)
    unknown = document.keys() - inner.keys()
    if unknown:
        raise ValueError(f"{kind.__name__}: unknown keys in the saved state: {', '.join(sorted(unknown))}")
    values = {
        name: value if inner[name] is None else [_built(inner[name], entry) for entry in value]
        for name, value in document.items()
    }
    return kind(**values)


@cache
def _inner(kind: Any) -> dict[str, Any]:
    """Of every field, the dataclass that it is a list of, or None."""
    hints = typing.get_type_hints(kind)
    found: dict[str, Any] = {}
    for entry in fields(kind):
        (item,) = typing.get_args(hints[entry.name])[:1] or (None,)
        is_list = typing.get_origin(hints[entry.name]) is list
        found[entry.name] = item if is_list and is_dataclass(item) else None
    return found
