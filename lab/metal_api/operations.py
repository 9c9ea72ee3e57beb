"""What the operations of the API have in common: reading a request, answering it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lab.metal_api.exceptions import BadRequest
from lab.metal_api.models import Json
from lab.metal_api.responses import PER_PAGE, page
from lab.metal_api.state import Account
from lab.metal_api.store import Store


class Operations:
    """Subclasses have one method per operation; the routes are in `urls`."""

    def __init__(self, account: Account, store: Store) -> None:
        self._account = account
        self._store = store

    async def _saved(self, document: Json | None, status: int) -> Response:
        """Answer a change once it is on disk."""
        await self._store.commit()
        return Response(status_code=status) if document is None else JSONResponse(document, status)

    def _list(
        self, request: Request, name: str, records: Sequence[Any], render: Any, *, per_page: int = PER_PAGE
    ) -> Response:
        return JSONResponse(page(request.url.path, request.query_params, name, records, render, per_page=per_page))


async def value_of(request: Request) -> Any:
    """The request's JSON; None for an empty body."""
    raw = await request.body()
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        raise BadRequest("Invalid JSON in the request body") from None


async def body_of(request: Request) -> Json:
    """The request's JSON object; an empty body is an empty object."""
    document = await value_of(request)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise BadRequest("The request body must be a JSON object")
    return cast("Json", document)
