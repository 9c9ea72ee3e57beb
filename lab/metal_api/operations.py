"""The operations of the API: services register theirs here by method and path, and what they answer is sent here.

An operation takes a `Call` and returns a document, a `Listing`, or None for an answer without a body. It knows nothing
of HTTP but what its path and its query say. Whatever it changed is on disk, and the router has followed, before the
client is answered.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api.access import Project
from lab.metal_api.body import body_of
from lab.metal_api.exceptions import ApiError
from lab.metal_api.listing import BASE, Listing, expanded, head, included
from lab.metal_api.provisioning import Provisioner
from lab.metal_api.records import Json, Record
from lab.metal_api.request_log import RequestLog
from lab.metal_api.routing import Routing
from lab.metal_api.state import Account
from lab.metal_api.store import Store

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, kw_only=True)
class Lab:
    """What the operations work on."""

    account: Account
    provisioner: Provisioner
    store: Store
    routing: Routing
    log: RequestLog


class Call:
    """One request: what it names and what it brings."""

    def __init__(self, lab: Lab, request: Request, body: Json) -> None:
        self.lab = lab
        self.account = lab.account
        self.query = request.query_params
        self.body = body
        self._request = request

    @property
    def id(self) -> str:
        """The last id in the path."""
        return list(self._request.path_params.values())[-1]

    @property
    def project_id(self) -> str:
        """The id of the project in the path, or NotFound."""
        return self.find(Project).id

    def find(self, kind: type[R]) -> R:
        """The record that the path names, or NotFound."""
        return self.account.table(kind).find(next(iter(self._request.path_params.values())))

    def answer(self, answer: Json | Listing | None, status: int) -> Response:
        """What an operation returned, with its references as they were asked for."""
        if answer is None:
            return Response(status_code=204 if status == 200 else status)
        include = included(self.query)

        @cache
        def resolve(href: str) -> Json | None:
            return resolved(self.account, href)

        def expand(document: Json) -> Json:
            return expanded(document, include, resolve)

        if isinstance(answer, Listing):
            return JSONResponse(answer.answer(self._request.url.path, self.query, expand))
        return JSONResponse(expand(answer), status)


Answer = Json | Listing | None
Operation = Callable[[Call], Answer | Awaitable[Answer]]
OPERATIONS: dict[str, dict[str, tuple[Operation, int]]] = {}
"""Path, below /metal/v1 unless it begins with /lab, as the official description writes it → method → operation, status
of its answer."""
_DOCUMENTS: dict[str, Callable[[Account, str], Json]] = {}
"""Collection → what is behind the link /metal/v1/<collection>/<id>."""
Operated = TypeVar("Operated", bound=Operation)


def operation(*routes: str, status: int = 200) -> Callable[[Operated], Operated]:
    """Register an operation as `METHOD /path`. The real API takes PATCH wherever it takes PUT; packngo uses both."""

    def register(made: Operated) -> Operated:
        for route in routes:
            method, _, path = route.partition(" ")
            OPERATIONS.setdefault(path, {})[method] = made, status
        return made

    return register


def links(collection: str, show: Callable[[Account, str], Json]) -> None:
    """Register what is behind links into a collection; by id, or NotFound."""
    _DOCUMENTS[collection] = show


def shows(
    collection: str,
    kind: type[R],
    *,
    key: str | None = None,
    below: str = "/projects/{id}",
    per_page: int | None = None,
) -> Callable[[Callable[[Account, R], Json]], Callable[[Account, R], Json]]:
    """Register what a record looks like, beside its `head`: behind links, when it is asked for by its id, and, where a
    `key` is given, in the list of a project's records, oldest first; `per_page` is None where the real API does not
    page that."""

    def register(beside_head: Callable[[Account, R], Json]) -> Callable[[Account, R], Json]:
        @wraps(beside_head)
        def document(account: Account, record: R) -> Json:
            return head(collection, record) | beside_head(account, record)

        def listed(call: Call) -> Listing:
            entries = call.account.table(kind).where("project_id", call.project_id)
            return Listing(
                name=key or "", entries=entries, shown=lambda entry: document(call.account, entry), per_page=per_page
            )

        links(collection, lambda account, identity: document(account, account.table(kind).find(identity)))
        operation(f"GET /{collection}/{{id}}")(lambda call: document(call.account, call.find(kind)))
        if key is not None:
            operation(f"GET {below}/{collection}")(listed)
        return document

    return register


def resolved(account: Account, href: str) -> Json | None:
    """The document behind a link; None if it cannot be shown, or does not exist any more."""
    collection, _, identity = href.removeprefix(f"{BASE}/").rpartition("/")
    show = _DOCUMENTS.get(collection)
    try:
        return show(account, identity) if show else None
    except ApiError:
        return None


async def perform(lab: Lab, request: Request, made: Operation, status: int) -> Response:
    """Answer a request, once everything that it changed is on disk, and the router has followed it."""
    call = Call(lab, request, await body_of(request))
    found = made(call)
    answer = await found if inspect.isawaitable(found) else found
    response = call.answer(answer, status)
    if request.method != "GET":
        lab.store.commit()
        await lab.routing.commit()
    return response
