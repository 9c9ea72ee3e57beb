"""Reads a BMC's documents by their links: each document once, and lists together with their members if possible.

BMCs answer slowly: a Lenovo one takes eleven seconds for each drive (bb-Ricardo/check_redfish issue 80). So the number
of requests and the total time are limited; what was not read then counts as not reported.

Lists are expanded (DSP0266, query parameters) if the service root offers that. Fujitsu's BMC nevertheless refuses the
parameter for some lists (bb-Ricardo/check_redfish issue 20), and some return links (DMTF/Redfish-Mockup-Server issue
78): then the missing documents are read one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from metal_ipi.provider import backoff

T = TypeVar("T")
Document = Mapping[str, Any]
MOST, SECONDS = 150, 90.0
"""The limit of requests to one BMC, and the seconds after which no further request is sent."""
NOT_THERE = (400, 403, 404, 405, 500, 501)
"""HTTP status codes for something that a BMC does not have, or does not show to this account."""
_FEW = 3
"""Up to so many documents are read one by one; for more, the list is expanded."""


class Untold(Exception):
    """The BMC has no such document, or the limit of requests was reached."""


class Documents:
    """The documents of one BMC."""

    def __init__(self) -> None:
        self._system: Any = None
        self._known: dict[str, Document | None] = {}
        self._asked = 0
        self._began = backoff.clock.now()
        self._expand = ""

    def of(self, system: Any) -> Document:
        """The System's document. From now on all documents are read through its session; known ones are not read
        again."""
        if self._system is None:
            self._expand = _expansion(member(system.root.json or {}, "ProtocolFeaturesSupported"))
        self._system = system
        return system.json or {}

    def get(self, link: object) -> Document:
        """A document by its path. Raises Untold."""
        if not isinstance(link, str):
            raise Untold
        if link not in self._known:
            self._known[link] = self._fetch(link)
        if (found := self._known[link]) is None:
            raise Untold
        return found

    def linked(self, document: Document, name: str) -> Document:
        """The document to which a field links. Raises Untold."""
        return self.get(link_of(document.get(name)))

    def listed(self, document: Document, name: str) -> Sequence[Document]:
        """The items of a field: a list, or a linked collection. Raises Untold."""
        value = document.get(name)
        if isinstance(value, list):
            return self._all(value, document, name)
        path = link_of(value)
        found = self.get(f"{path}{self._expand}" if path is not None and self._expand else path)
        members = found.get("Members")
        if not isinstance(members, list):
            raise Untold
        return self._all(members, found, "Members")

    def related(self, system: Document, name: str) -> Sequence[Document]:
        """The documents in the System's Links, `Chassis` or `ManagedBy`. Raises Untold."""
        found: Any = member(system, "Links").get(name)
        if not isinstance(found, list):
            raise Untold
        return [self.get(link_of(item)) for item in found]

    @property
    def over(self) -> bool:
        """Whether the limit of requests is reached, so that something not found may still exist."""
        return self._asked >= MOST or backoff.clock.now() - self._began > SECONDS

    def _all(self, items: Sequence[Any], document: Document, name: str) -> Sequence[Document]:
        """The documents of a list's items, which may be expanded already."""
        path = link_of(document)
        if self._expand and path is not None and sum(map(_is_link, items)) > _FEW:
            whole = (or_none(lambda: self.get(f"{path}{self._expand}")) or {}).get(name)
            items = whole if isinstance(whole, list) and len(whole) == len(items) else items
        return [self.get(link_of(item)) if _is_link(item) else item for item in items if isinstance(item, dict)]

    def _fetch(self, link: str) -> Document | None:
        from sushy import exceptions

        if self.over:
            return None
        self._asked += 1
        try:
            found = self._system._conn.get(link).json()
        except ValueError:
            return None
        except exceptions.HTTPError as error:
            if error.status_code not in NOT_THERE:
                raise
            path, query, _ = link.partition("?")
            if not query:
                return None
            if path not in self._known:
                self._known[path] = self._fetch(path)
            if (plain := self._known[path]) is not None:
                self._expand = ""  # it was refused once, so it is not tried again
            return plain
        return found if isinstance(found, dict) else None


def or_none(read: Callable[[], T]) -> T | None:
    """The result of `read`; None if the BMC does not report it."""
    try:
        return read()
    except Untold:
        return None


def member(document: Document, name: str) -> Document:
    """A field that is an object; an empty one if it is not."""
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def link_of(value: object) -> str | None:
    """The target of a link."""
    found = value.get("@odata.id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def text(value: object) -> str | None:
    """A text that is not empty; some BMCs pad texts with spaces."""
    return value.strip() or None if isinstance(value, str) else None


def number(value: Any) -> float | None:
    """A finite number; some BMCs report numbers as text."""
    try:
        found = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def _is_link(item: Any) -> bool:
    return isinstance(item, dict) and set(item) <= {"@odata.id"}


def _expansion(features: Document) -> str:
    """The query parameter that expands a list's members; empty if the BMC does not offer it."""
    query = member(features, "ExpandQuery")
    kind = "." if query.get("NoLinks") else "*" if query.get("ExpandAll") else ""
    if not kind:
        return ""
    return f"?$expand={kind}($levels=1)" if query.get("Levels") else f"?$expand={kind}"
