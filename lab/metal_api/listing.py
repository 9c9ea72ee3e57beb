"""Lists and references as the API shows them: pages, and what `include` expands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from lab.metal_api.exceptions import NotImplementedInLab
from lab.metal_api.records import Json, Record

BASE = "/metal/v1"
PER_PAGE, MAX_PER_PAGE = 10, 1000
_DEEPEST = 3
Tree = dict[str, Any]


def link(collection: str, identity: str) -> Json:
    """A reference as the API writes it; what stands behind it is what the service of the collection shows."""
    return {"href": f"{BASE}/{collection}/{identity}"}


def head(collection: str, record: Record) -> Json:
    """What the document of a record in a collection begins with."""
    href = f"{BASE}/{collection}/{record.id}"
    return {"id": record.id, "href": href, "created_at": record.created_at, "updated_at": record.updated_at}


def values(query: QueryParams, name: str) -> list[str]:
    """A parameter that may be repeated, be written `name[]`, and hold several values between commas."""
    texts = [*query.getlist(name), *query.getlist(f"{name}[]")]
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def flag(query: QueryParams, name: str) -> bool | None:
    """A parameter that is true or false; None where it is not given, or is neither."""
    return {"true": True, "false": False}.get(query.get(name, "").lower())


def included(query: QueryParams) -> Tree:
    """Which references a client wants expanded, each up to three levels deep."""
    tree: Tree = {}
    for name in values(query, "include"):
        branch = tree
        for part in name.split(".")[:_DEEPEST]:
            branch = branch.setdefault(part, {})
    return tree


def expanded(document: Json, include: Tree, resolve: Callable[[str], Json | None]) -> Json:
    """A document as it is wanted. `resolve` finds what is behind a link, or None where it cannot be shown."""

    def entry(name: str, value: Any) -> Any:
        if not isinstance(value, dict) or "href" not in value:
            return value
        reference = cast("Json", value)
        if "id" not in reference:  # a link may have a price beside it
            reference = {**(resolve(str(reference["href"])) or {}), **reference}
        return expanded(reference, include[name], resolve)

    result = dict(document)
    for name in include.keys() & document.keys():
        value = document[name]
        result[name] = [entry(name, each) for each in value] if isinstance(value, list) else entry(name, value)
    return result


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The answer to a request for a list."""

    name: str
    """Its key in the answer."""
    entries: Sequence[Any]
    shown: Callable[[Any], Json]
    per_page: int | None = PER_PAGE
    """None for a list that the real API does not page."""
    filters: Collection[str] = ()
    """The query parameters that the operation has looked at; others that the real API has are answered 501."""

    def answer(self, path: str, query: QueryParams, expand: Callable[[Json], Json]) -> Json:
        """The list, or a page of it; only what is on the page is made.

        The links of `meta` lack the /metal/v1 of all other links: packngo puts its base address before them.
        """
        unknown = query.keys() - {"include", "include[]", "page", "per_page", *self.filters}
        if unknown:
            raise NotImplementedInLab(f"{path} by {', '.join(sorted(unknown))}")
        if self.per_page is None:
            return {self.name: [expand(self.shown(entry)) for entry in self.entries]}
        per_page = max(1, min(_number(query, "per_page", self.per_page), MAX_PER_PAGE))
        last = max(1, -(-len(self.entries) // per_page))
        current = max(1, _number(query, "page", 1))
        others = [(key, value) for key, value in query.multi_items() if key != "page"]

        def to(number: int) -> Json:
            return {"href": f"{path.removeprefix(BASE)}?{urlencode([*others, ('page', number)])}"}

        start = (current - 1) * per_page
        return {
            self.name: [expand(self.shown(entry)) for entry in self.entries[start : start + per_page]],
            "meta": {
                "first": to(1),
                "previous": to(current - 1) if current > 1 else None,
                "self": to(current),
                "next": to(current + 1) if current < last else None,
                "last": to(last),
                "current_page": current,
                "last_page": last,
                "total": len(self.entries),
            },
        }


def _number(query: QueryParams, key: str, default: int) -> int:
    try:
        return int(query.get(key, default))
    except ValueError:
        return default
