"""The saved tables: records by id, found by what they are indexed by, noticed when they change.

A kind of record is a dataclass below `Record` that `saved` registers, once, beside its definition: that is all it needs
to be kept over a restart. Records change by assignment of whole fields; what happens inside of a list or of a mapping
is not noticed, so these are replaced, not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, ValuesView
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic import TypeAdapter

from lab.metal_api.exceptions import NotFound

Json = dict[str, Any]


@dataclass(kw_only=True)
class Record:
    """Base of everything that is saved. `Account.make` gives new ones their id and times."""

    TABLE: ClassVar[str]
    INDEXED: ClassVar[tuple[str, ...]]
    OF_DEVICE: ClassVar[bool]
    id: str
    created_at: str = ""
    updated_at: str = ""

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


def saved(table: str, *, indexed: tuple[str, ...] = (), of_device: bool = False) -> Callable[[type[R]], type[R]]:
    """Register a kind under the name of its table.

    `indexed` are attributes: a text, None for no entry, or a list. What is `of_device` goes when the device does whose
    id is in its `device_id`.
    """

    def register(kind: type[R]) -> type[R]:
        if table in _kinds:
            raise TypeError(f"two kinds of records are saved as {table}: {_kinds[table].__name__}, {kind.__name__}")
        kind.TABLE, kind.INDEXED, kind.OF_DEVICE = table, indexed, of_device
        _kinds[table] = kind
        return kind

    return register


def registered() -> list[str]:
    """The names of all tables."""
    return list(_kinds)


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

    def forget_device(self, device_id: str) -> None:
        """Delete what was made for a device."""
        for kind in _kinds.values():
            for record in self.table(kind).where("device_id", device_id) if kind.OF_DEVICE else []:
                del self.table(kind)[record.id]

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
        """Take over records by table and id. What another version saved and this one does not know is left out."""
        for name in tables.keys() & _kinds.keys():
            adapter = TypeAdapter(_kinds[name])
            for document in tables[name].values():
                self.table(_kinds[name]).add(adapter.validate_python(document))

    def _document(self, table: str, identity: str) -> Json | None:
        record = self._tables[table].get(identity)
        return None if record is None else to_json(record)


def to_json(record: Any) -> Json:
    """A record as JSON; other dataclasses in it as well."""
    return asdict(record)
