"""The API's operations on ports."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from lab.metal_api.body import body_of
from lab.metal_api.listing import flag
from lab.metal_api.operations import Operations
from lab.metal_api.ports import batches, models
from lab.metal_api.ports.documents import batch_document, document
from lab.metal_api.ports.models import Port


class Responses(Operations):
    """One method per operation."""

    def port(self, request: Request) -> Port:
        """The port that the path names, or NotFound."""
        port = models.find(self.account, request.path_params["id"])
        self.visible(request, port.device)
        return port

    async def show(self, request: Request) -> Response:
        return self.shown(request, document(self.account, self.port(request)))

    async def bond(self, request: Request) -> Response:
        """packngo says in the body what the description has in the query."""
        both = flag(request.query_params, "bulk_enable") or bool((await body_of(request)).get("bulk_enable"))
        return self._changed(request, lambda port: models.bond(self.account, port, both=both))

    async def disbond(self, request: Request) -> Response:
        both = flag(request.query_params, "bulk_disable") or bool((await body_of(request)).get("bulk_disable"))
        return self._changed(request, lambda port: models.disbond(self.account, port, both=both))

    async def to_layer2(self, request: Request) -> Response:
        """With a VLAN in the body, that is assigned as well."""
        vnid = (await body_of(request)).get("vnid")

        def convert(port: Port) -> None:
            if vnid:
                models.find_network(self.account, port, vnid)
            models.to_layer2(self.account, port)
            if vnid:
                models.assign(self.account, port, vnid)

        answer = self._changed(request, convert)
        await self.lab.routing.commit()
        return answer

    async def to_layer3(self, request: Request) -> Response:
        wanted = (await body_of(request)).get("request_ips")
        answer = self._changed(request, lambda port: models.to_layer3(self.account, port, wanted))
        await self.lab.routing.commit()
        return answer

    async def assign(self, request: Request) -> Response:
        vnid = (await body_of(request)).get("vnid")
        return self._changed(request, lambda port: models.assign(self.account, port, vnid))

    async def unassign(self, request: Request) -> Response:
        vnid = (await body_of(request)).get("vnid")
        return self._changed(request, lambda port: models.unassign(self.account, port, vnid))

    async def set_native(self, request: Request) -> Response:
        """packngo says in the body what the description has in the query."""
        vnid = request.query_params.get("vnid") or (await body_of(request)).get("vnid")
        return self._changed(request, lambda port: models.set_native(self.account, port, vnid))

    async def remove_native(self, request: Request) -> Response:
        return self._changed(request, lambda port: models.remove_native(self.account, port))

    async def batches(self, request: Request) -> Response:
        return self.listed(request, "batches", batches.batches_of(self.account, self.port(request)), batch_document)

    async def create_batch(self, request: Request) -> Response:
        entry = batches.create(self.account, self.port(request), await body_of(request))
        return self.saved(request, batch_document(entry), 201)

    async def batch(self, request: Request) -> Response:
        entry = batches.batch(self.account, self.port(request), request.path_params["batch_id"])
        return self.shown(request, batch_document(entry))

    def _changed(self, request: Request, change: Callable[[Port], object]) -> Response:
        port = self.port(request)
        change(port)
        return self.saved(request, document(self.account, port), 200)
