"""What a BMC has to read, by its links: each document once, lists with what is listed where the BMC offers that.

BMCs answer slowly: a Lenovo one takes eleven seconds for each drive (bb-Ricardo/check_redfish issue 80). So no more is
asked than a number of requests, and for so long; what is not known then counts as not told.

Lists are expanded (DSP0266, query parameters) where the service root says that it can be done. Fujitsu's BMC refuses
the parameter for some lists all the same (bb-Ricardo/check_redfish issue 20), and some answer links (DMTF/
Redfish-Mockup-Server issue 78): what is missing is asked for one by one then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from metal_ipi.provider import backoff

T = TypeVar("T")
Document = Mapping[str, Any]
MOST, SECONDS = 150, 90.0
"""Requests to one BMC, and the time after which no further one is made."""
NOT_THERE = (400, 403, 404, 405, 500, 501)
"""Answers to what a BMC does not have, or does not show to this account."""
_FEW = 3
"""So many documents are asked for one by one; of more, the list is expanded."""


class Untold(Exception):
    """The BMC has no such document, or it was not asked for it any more."""


class Documents:
    """Those of one BMC."""

    def __init__(self) -> None:
        self._system: Any = None
        self._known: dict[str, Document | None] = {}
        self._asked = 0
        self._began = backoff.clock.now()
        self._expand = ""

    def of(self, system: Any) -> Document:
        """The System, through whose session all is asked from now on. What is known already is not asked again."""
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
        """The document that a member links to. Raises Untold."""
        return self.get(link_of(document.get(name)))

    def listed(self, document: Document, name: str) -> Sequence[Document]:
        """What a member lists: itself, or as a collection that it links to. Raises Untold."""
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
        """What the System's Links lead to, `Chassis` or `ManagedBy`. Raises Untold."""
        found: Any = member(system, "Links").get(name)
        if not isinstance(found, list):
            raise Untold
        return [self.get(link_of(item)) for item in found]

    @property
    def over(self) -> bool:
        """Whether no more is asked: what was not found may be there all the same."""
        return self._asked >= MOST or backoff.clock.now() - self._began > SECONDS

    def _all(self, items: Sequence[Any], document: Document, name: str) -> Sequence[Document]:
        """The documents behind items of a list, which may be there already."""
        path = link_of(document)
        if self._expand and path is not None and sum(map(_is_link, items)) > _FEW:
            whole = (told(lambda: self.get(f"{path}{self._expand}")) or {}).get(name)
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
                self._expand = ""  # refused once, it is not tried again
            return plain
        return found if isinstance(found, dict) else None


def told(read: Callable[[], T]) -> T | None:
    """What is read; None where the BMC does not tell."""
    try:
        return read()
    except Untold:
        return None


def member(document: Document, name: str) -> Document:
    """A member that is an object; an empty one where it is none."""
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def link_of(value: object) -> str | None:
    """Where a link leads."""
    found = value.get("@odata.id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def text(value: object) -> str | None:
    """A text that says something; some BMCs pad them."""
    return value.strip() or None if isinstance(value, str) else None


def number(value: Any) -> float | None:
    """A finite number; some BMCs tell numbers as text."""
    try:
        found = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def _is_link(item: Any) -> bool:
    return isinstance(item, dict) and set(item) <= {"@odata.id"}


def _expansion(features: Document) -> str:
    """The parameter that has a list's members in the list; empty where the BMC does not offer it."""
    query = member(features, "ExpandQuery")
    kind = "." if query.get("NoLinks") else "*" if query.get("ExpandAll") else ""
    if not kind:
        return ""
    return f"?$expand={kind}($levels=1)" if query.get("Levels") else f"?$expand={kind}"
