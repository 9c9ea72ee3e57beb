"""A plug-in for tests: devices of the lab's Metal API, and gates that wait; both as slow as their inputs say."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from typing import Any, cast

import grpc.aio
import httpx
from pulumi.provider.experimental import provider
from pulumi.provider.experimental.server import main
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

API = httpx.AsyncClient(
    base_url=os.environ["METAL_API_URL"], headers={"X-Auth-Token": os.environ["TEST_METAL_TOKEN"]}, timeout=10
)


class TestProvider(provider.Provider):
    async def check_config(self, request: provider.CheckRequest) -> provider.CheckResponse:
        return provider.CheckResponse(inputs=request.new_inputs)

    async def configure(self, request: provider.ConfigureRequest) -> provider.ConfigureResponse:
        return provider.ConfigureResponse()

    async def check(self, request: provider.CheckRequest) -> provider.CheckResponse:
        return provider.CheckResponse(inputs=request.new_inputs)

    async def diff(self, request: provider.DiffRequest) -> provider.DiffResponse:
        return provider.DiffResponse(changes=False)

    async def create(self, request: provider.CreateRequest) -> provider.CreateResponse:
        values: dict[str, Any] = {key: value.value for key, value in request.properties.items()}
        if request.preview:
            return provider.CreateResponse(properties=request.properties)
        if "fail" in values:
            raise ValueError(values["fail"])
        if request.type.endswith(":Gate"):
            await self.say(request.urn, f"0 of 1 nodes answered: {values['node']}")
            await asyncio.sleep(values["seconds"])
            return provider.CreateResponse(resource_id=f"gate-{uuid.uuid4()}", properties=request.properties)
        order = {"metro": "lb", "plan": "c3.small.x86", "operating_system": "custom_ipxe", "userdata": "#!ipxe\nshell"}
        body = {**order, "hostname": values["hostname"], "tags": [tag.value for tag in values["tags"]]}
        response = await API.post(f"/projects/{os.environ['TEST_METAL_PROJECT']}/devices", json=body)
        response.raise_for_status()
        # Ordered, and not yet told to the engine: a kill here makes an orphan.
        await asyncio.sleep(values["seconds"])
        return provider.CreateResponse(resource_id=response.json()["id"], properties=request.properties)

    async def read(self, request: provider.ReadRequest) -> provider.ReadResponse:
        return provider.ReadResponse(request.resource_id, request.properties, request.inputs)

    async def delete(self, request: provider.DeleteRequest) -> None:
        if not request.resource_id.startswith("gate-"):
            (await API.delete(f"/devices/{request.resource_id}")).raise_for_status()

    async def say(self, urn: str, message: str) -> None:
        async with grpc.aio.insecure_channel(sys.argv[1]) as channel:
            request = engine_pb2.LogRequest(severity=engine_pb2.INFO, message=message, urn=urn, ephemeral=True)
            await cast(Any, engine_pb2_grpc.EngineStub(channel)).Log(request)


if __name__ == "__main__":
    main(sys.argv[1:], "1.0.0", TestProvider())
