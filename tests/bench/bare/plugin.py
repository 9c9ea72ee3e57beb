"""The trivial plug-in: what it is given is what is there."""

from __future__ import annotations

import sys

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.server import main


class Bare(api.Provider):
    """Resources without substance."""

    async def check_config(self, request: api.CheckRequest) -> api.CheckResponse:
        return api.CheckResponse(inputs=request.new_inputs)

    async def configure(self, request: api.ConfigureRequest) -> api.ConfigureResponse:
        return api.ConfigureResponse()

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        return api.CheckResponse(inputs=request.new_inputs)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        return api.DiffResponse(changes=False)

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        return api.CreateResponse(resource_id=request.urn, properties=request.properties)

    async def delete(self, request: api.DeleteRequest) -> None:
        pass


if __name__ == "__main__":
    main(sys.argv[1:], "1.0.0", Bare())
