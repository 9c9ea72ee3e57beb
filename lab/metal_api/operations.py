"""What the operations of all services have in common: whom they answer, what they find, how they answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api.access import Caller, caller_of
from lab.metal_api.devices.provisioning import Provisioner
from lab.metal_api.exceptions import ApiError, NotFound
from lab.metal_api.listing import BASE, PER_PAGE, View, page
from lab.metal_api.records import Json, Record
from lab.metal_api.routing import Routing
from lab.metal_api.state import Account
from lab.metal_api.store import Store

Endpoint = Callable[[Request], Awaitable[Response]]
Urls = list[tuple[str, dict[str, Endpoint]]]
"""Path below /metal/v1, as the official description writes it → method → operation."""
T = TypeVar("T")
R = TypeVar("R", bound=Record)


@dataclass(frozen=True, kw_only=True)
class Lab:
    """What the services are made of."""

    account: Account
    provisioner: Provisioner
    store: Store
    routing: Routing
    documents: dict[str, Callable[[str], Json]] = field(default_factory=dict[str, Callable[[str], Json]])
    """By collection: what is behind /metal/v1/<collection>/<id>, for `include`. A service adds its own in `urls`."""

    def resolve(self, href: str) -> Json | None:
        """What is behind a link; None where nobody shows it, or it is gone."""
        collection, _, identity = href.removeprefix(f"{BASE}/").rpartition("/")
        show = self.documents.get(collection)
        try:
            return show(identity) if show else None
        except ApiError:
            return None


class Operations:
    """Subclasses are a service's `Responses`, with one method per operation; the routes are in its `urls`."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.account = lab.account

    def find(self, request: Request, kind: type[R], parameter: str = "id") -> R:
        """The record that the path names, or NotFound: also where the caller's token is another project's."""
        return self.visible(request, self.account.table(kind).find(request.path_params[parameter]))

    def visible(self, request: Request, record: R) -> R:
        """A record that the caller may know of, or NotFound. What belongs to a project says so: `project_id`."""
        if not self.caller(request).sees(getattr(record, "project_id", None)):
            raise NotFound
        return record

    def caller(self, request: Request) -> Caller:
        """Whose request it is."""
        return caller_of(request)

    def shown(self, request: Request, document: Json, status: int = 200) -> Response:
        """Answer with a document, its references as they were asked for."""
        return JSONResponse(self._view(request)(document), status)

    def saved(self, request: Request, document: Json | None, status: int) -> Response:
        """Answer a change once it is on disk; None for an answer without a body."""
        self.lab.store.commit()
        return Response(status_code=status) if document is None else self.shown(request, document, status)

    async def routed(self, request: Request, document: Json | None, status: int) -> Response:
        """Answer a change once it is on disk and the router has followed it."""
        answer = self.saved(request, document, status)
        await self.lab.routing.commit()
        return answer

    def paged(
        self,
        request: Request,
        name: str,
        records: Sequence[T],
        render: Callable[[T], Json],
        *,
        per_page: int = PER_PAGE,
    ) -> Response:
        """Answer with a page of a list."""
        query, view = request.query_params, self._view(request)
        return JSONResponse(
            page(request.url.path, query, name, records, lambda record: view(render(record)), per_page=per_page)
        )

    def listed(self, request: Request, name: str, records: Sequence[T], render: Callable[[T], Json]) -> Response:
        """Answer with the whole of a list that is not paged."""
        view = self._view(request)
        return JSONResponse({name: [view(render(record)) for record in records]})

    def _view(self, request: Request) -> Callable[[Json], Json]:
        """Documents as they were asked for; what a link leads to is made once, and only where the caller may look."""
        view, caller = View.of(request.query_params), self.caller(request)

        @cache
        def resolve(href: str) -> Json | None:
            return self.lab.resolve(href) if caller.follows(href) else None

        return lambda document: view.shown(document, resolve)
