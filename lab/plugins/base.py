"""What all stand-in plug-ins share: the gRPC server, its errors, and the engine's log.

The SDK's server answers an exception with a traceback, cannot say «made, but not finished», and outlives an engine that
was killed. This one answers in sentences, keeps what was made in the state, and ends itself with its engine.

    PluginError        a sentence for the person at the keyboard
    ├── NotInTheLab    the official plug-in has it, the stand-in does not
    └── InitFailed     made, but not finished: carries what is known, so that the engine keeps it
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NoReturn, Protocol, TypeVar

import grpc
import grpc.aio
from google.protobuf import empty_pb2
from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2

Properties = dict[str, PropertyValue]
T = TypeVar("T")

ENGINE_KEYS = ("version", "pluginDownloadURL", "pluginChecksums")
"""What the engine adds to a provider's own configuration."""

PARENT_CHECK_SECONDS = 1.0
"""How often a plug-in looks whether its engine still lives."""

_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", 400 * 1024 * 1024),
    # Many requests arrive at once: the last may wait long until it is handled.
    ("grpc.server_max_unrequested_time_in_server", 30 * 60),
)
"""What Pulumi's own plug-ins in Python set."""

CLEAN_UP_SECONDS = 3.0
"""How long running operations may take to stop once the engine is gone."""


class PluginError(Exception):
    """Something the person can act on; told without a traceback."""


class NotInTheLab(PluginError):
    """The official plug-in can do it, the stand-in does not pretend to."""

    def __init__(self, plugin: str, what: str) -> None:
        super().__init__(f"the lab's stand-in for {plugin} does not implement {what}; install the official plugin")


class InitFailed(PluginError):
    """The resource exists but is not as wished: the engine records it with the reasons and updates it next time."""

    def __init__(self, resource_id: str, properties: Properties, reason: str) -> None:
        super().__init__(reason)
        self.resource_id = resource_id
        self.properties = properties


class EngineLog:
    """Messages to whoever watches the engine. `status` lines replace each other in the display and are not kept."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stub: Any = None

    async def status(self, urn: str, message: str) -> None:
        """What is being waited for, or a line of output."""
        await self._send(engine_pb2.INFO, urn, message, ephemeral=True)

    async def warning(self, urn: str, message: str) -> None:
        """Something that did not go as wished, but goes on."""
        await self._send(engine_pb2.WARNING, urn, message, ephemeral=False)

    async def _send(self, severity: Any, urn: str, message: str, *, ephemeral: bool) -> None:
        if not self._address:
            return
        if self._stub is None:
            self._stub = engine_pb2_grpc.EngineStub(grpc.aio.insecure_channel(self._address))
        request = engine_pb2.LogRequest(severity=severity, message=message, urn=urn, ephemeral=ephemeral)
        # A log line that cannot be told must not fail the work it tells of: the engine may be on its way out.
        with contextlib.suppress(grpc.aio.AioRpcError):
            await self._stub.Log(request, timeout=5)


class Resource(Protocol):
    """The life of one resource type. `check` does no I/O; in a preview nothing does more than look."""

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Inputs with defaults, or what is wrong with them."""
        ...

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """What changed, and whether it takes a new resource."""
        ...

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Make it; in a preview, say what would be."""
        ...

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """What it looks like now; an empty id when it is gone."""
        ...

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Change it in place; in a preview, say what would be."""
        ...

    async def delete(self, request: api.DeleteRequest) -> None:
        """Remove it. Idempotent."""
        ...


class StandIn(api.Provider):
    """Hands each request to the resource type it is about; functions, methods, components are refused by name."""

    def __init__(self, plugin: str, resources: Mapping[str, Resource]) -> None:
        self.plugin = plugin
        self.resources = resources

    def resource(self, token: str) -> Resource:
        """The resource type that a token names."""
        try:
            return self.resources[token]
        except KeyError:
            raise NotInTheLab(self.plugin, f"the resource type {token}") from None

    async def close(self) -> None:
        """Let go of what is held open; the last thing that happens."""

    async def get_schema(self, request: api.GetSchemaRequest) -> api.GetSchemaResponse:
        """Programs use the official SDK, which was made from the official schema."""
        raise NotInTheLab(self.plugin, "GetSchema")

    async def invoke(self, request: api.InvokeRequest) -> api.InvokeResponse:
        """No functions, unless a plug-in has some."""
        raise NotInTheLab(self.plugin, f"the function {request.tok}")

    async def call(self, request: api.CallRequest) -> api.CallResponse:
        """No methods in the lab."""
        raise NotInTheLab(self.plugin, f"the method {request.tok}")

    async def construct(self, request: api.ConstructRequest) -> api.ConstructResponse:
        """No components in the lab."""
        raise NotInTheLab(self.plugin, f"the component {request.resource_type}")


def _handed_on(name: str) -> Callable[[StandIn, Any], Coroutine[Any, Any, Any]]:
    async def method(self: StandIn, request: Any) -> Any:
        # A URN names the types of all parents: metal-ipi:machines:EquinixMetal$equinix-metal:index/device:Device.
        return await getattr(self.resource(request.type.rpartition("$")[2]), name)(request)

    return method


for _name in ("check", "diff", "create", "read", "update", "delete"):
    setattr(StandIn, _name, _handed_on(_name))


class Servicer(ProviderServicer):
    """The SDK's gRPC servicer with answers instead of tracebacks, and operations that can be cancelled."""

    def __init__(self, version: str, provider: StandIn, engine_address: str) -> None:
        super().__init__([], version, provider, engine_address)
        self._running: set[asyncio.Future[Any]] = set()
        self._cancelled = False

    async def Cancel(self, request: Any, context: Any) -> Any:
        """Stop what is running; it answers with what it has."""
        self.cancel_running()
        return empty_pb2.Empty()

    def cancel_running(self) -> None:
        """Ask every running operation to end."""
        self._cancelled = True
        for task in self._running:
            task.cancel()

    async def drain(self, seconds: float) -> None:
        """Wait until the running operations have ended, but not longer than this."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)

    async def answer(self, operation: Coroutine[Any, Any, T], context: Any) -> T:
        """The operation's answer; a failure in a sentence, with what was made."""
        task = asyncio.ensure_future(operation)
        self._running.add(task)
        try:
            return await task
        except InitFailed as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error), _init_failed_metadata(error))
        except PluginError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
            await context.abort(grpc.StatusCode.CANCELLED, "cancelled")
        except Exception as error:
            traceback.print_exc()
            await context.abort(grpc.StatusCode.UNKNOWN, f"fault in the lab's stand-in plugin: {error!r}")
        finally:
            self._running.discard(task)
        raise AssertionError("abort returned")


def _answered(name: str) -> Callable[[Servicer, Any, Any], Coroutine[Any, Any, Any]]:
    operation = getattr(ProviderServicer, name)

    async def method(self: Servicer, request: Any, context: Any) -> Any:
        return await self.answer(operation(self, request, context), context)

    return method


for _name in ("CheckConfig", "Configure", "GetSchema", "Invoke", "Construct", "Call"):
    setattr(Servicer, _name, _answered({"Construct": "_construct", "Call": "_call"}.get(_name, _name)))
for _name in ("Check", "Diff", "Create", "Read", "Update", "Delete"):
    setattr(Servicer, _name, _answered(_name))


def _init_failed_metadata(error: InitFailed) -> tuple[tuple[str, bytes], ...]:
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    status.details.add().Pack(
        provider_pb2.ErrorResourceInitFailed(
            id=error.resource_id, properties=PropertyValue.marshal_map(error.properties), reasons=[str(error)]
        )
    )
    return (("grpc-status-details-bin", status.SerializeToString()),)


async def _parent_gone(parent: int) -> None:
    while os.getppid() == parent:  # noqa: ASYNC110 - nobody tells a process that its parent died
        await asyncio.sleep(PARENT_CHECK_SECONDS)


async def _serve(version: str, build: Callable[[EngineLog], StandIn], engine_address: str) -> None:
    parent = os.getppid()
    provider = build(EngineLog(engine_address))
    servicer = Servicer(version, provider, engine_address)
    server = grpc.aio.server(options=_CHANNEL_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await _parent_gone(parent)
    servicer.cancel_running()
    await servicer.drain(CLEAN_UP_SECONDS)
    await server.stop(grace=None)
    await provider.close()


def serve(version: str, build: Callable[[EngineLog], StandIn]) -> NoReturn:
    """Run the plug-in until its engine goes. Arguments as the engine gives them: its address, and flags to ignore."""
    address = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(version, build, address))
    sys.exit(0)
