"""The gRPC server of the provider. It adds what the SDK's server does not do:

- An error reaches the user as one message, without traceback and without secrets.
- A resource that was created but not finished is reported with its state (`ErrorResourceInitFailed`), so that nothing
  is lost.
- Old inputs that a type does not store in its outputs are added to the old values: the SDK (3.256.0) passes only the
  outputs.
- Cancel ends the running operations, so that they can report what they created.
- The plugin ends when the engine dies: otherwise operations of a killed run would go on during the next run.
- DiffConfig says that changed credentials replace nothing. The SDK's DiffConfig (3.256.0) cannot answer a detailed
  diff.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from google.protobuf import empty_pb2
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime import proto
from pulumi.runtime.proto import provider_pb2_grpc, status_pb2

from metal_ipi.provider.errors import InitFailed, ProviderError
from metal_ipi.provider.status import EngineLog, Redactor
from metal_ipi.provider.values import secret_texts

if TYPE_CHECKING:
    from metal_ipi.provider.plugin import MetalIpiProvider

_MAX_MESSAGE_BYTES = 400 * 1024 * 1024
_OPTIONS = [
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    # How long a request may wait until it is handled: a large facility sends hundreds at once.
    ("grpc.server_max_unrequested_time_in_server", 1800),
]


def _with_old_inputs(outputs: str, request: Any) -> Any:
    """Adds to the old outputs of a request, in the field `outputs`, the old inputs that are not among them."""
    old = getattr(request, outputs).fields
    for name, value in request.old_inputs.fields.items():
        if name not in old:
            old[name].CopyFrom(value)
    return request


def _guarded(work: Callable[..., Awaitable[Any]], prepare: Callable[[Any], Any] = lambda request: request) -> Any:
    """Wraps a method of the SDK's servicer so that its errors become gRPC answers."""

    async def guarded(self: Any, request: Any, context: Any) -> Any:
        return await self.guard(partial(work, self), prepare(request), context)

    return guarded


class Servicer(ProviderServicer):
    """The SDK's servicer with readable errors."""

    def __init__(self, args: list[str], version: str, provider: MetalIpiProvider, engine_address: str) -> None:
        super().__init__(args, version, provider, engine_address)
        self._redact = Redactor()
        self._running: set[asyncio.Task[Any]] = set()
        if engine_address:
            provider.log = EngineLog(engine_address, self._redact)
        self._log = provider.log

    async def guard(self, work: Callable[[Any, Any], Awaitable[Any]], request: Any, context: Any) -> Any:
        """Runs one request with the SDK's servicer and turns its errors into answers."""
        self._learn(request)
        urn = getattr(request, "urn", "")
        task = asyncio.ensure_future(work(request, context))
        self._running.add(task)
        try:
            return await task
        except InitFailed as error:
            await self._abort_with_state(context, error)
        except ProviderError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, self._redact(str(error)))
        except asyncio.CancelledError:
            await context.abort(grpc.StatusCode.CANCELLED, "cancelled")
        except Exception as error:
            await self._log.send(traceback.format_exc(), urn=urn, ephemeral=False, debug=True)
            kind = type(error).__name__
            message = f"unexpected {kind}: {error} (an error in the provider; `--debug` logs where)"
            await context.abort(grpc.StatusCode.INTERNAL, self._redact(message))
        finally:
            self._running.discard(task)

    def _learn(self, request: Any) -> None:
        for name in ("args", "properties", "olds", "news", "inputs"):
            struct = getattr(request, name, None)
            if struct is not None:
                for value in PropertyValue.unmarshal_map(struct).values():
                    self._redact.learn(secret_texts(value))

    async def _abort_with_state(self, context: Any, error: InitFailed) -> None:
        message = self._redact(str(error))
        detail = proto.ErrorResourceInitFailed(
            id=error.resource_id, properties=PropertyValue.marshal_map(error.outputs), reasons=[message]
        )
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=message)
        status.details.add().Pack(detail)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        await context.abort(grpc.StatusCode.UNKNOWN, message)

    async def Cancel(self, request: Any, context: Any) -> Any:
        for task in list(self._running):
            task.cancel()
        return await super().Cancel(request, context)

    async def DiffConfig(self, request: Any, context: Any) -> Any:
        same = request.olds == request.news
        changes = proto.DiffResponse.DIFF_NONE if same else proto.DiffResponse.DIFF_SOME
        return proto.DiffResponse(changes=changes, replaces=[])

    CheckConfig = _guarded(ProviderServicer.CheckConfig)
    Configure = _guarded(ProviderServicer.Configure)
    Check = _guarded(ProviderServicer.Check)
    Diff = _guarded(ProviderServicer.Diff, partial(_with_old_inputs, "olds"))
    Create = _guarded(ProviderServicer.Create)
    Update = _guarded(ProviderServicer.Update, partial(_with_old_inputs, "olds"))
    Read = _guarded(ProviderServicer.Read)
    Delete = _guarded(ProviderServicer.Delete, partial(_with_old_inputs, "properties"))
    Invoke = _guarded(ProviderServicer.Invoke)

    async def Attach(self, request: Any, context: Any) -> Any:
        self._engine_address = request.address
        self._provider.log = self._log = EngineLog(request.address, self._redact)  # type: ignore[attr-defined]
        return empty_pb2.Empty()


def main(args: list[str], version: str, provider: MetalIpiProvider, servicer: type[Servicer] = Servicer) -> None:
    """Serves until the engine ends. The engine passes its address first, and reads the port from our standard
    output."""
    addresses = [arg for arg in args if not arg.startswith("-")]
    _end_with_parent()
    try:
        asyncio.run(_serve(servicer(args, version, provider, addresses[0] if addresses else "")))
    except KeyboardInterrupt:
        return


async def _serve(servicer: Servicer) -> None:
    server = grpc.aio.server(options=_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


def _end_with_parent(interval: float = 0.5) -> None:
    """Starts a thread that ends this process at once when the parent process is gone, even if the parent was killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(interval)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end-with-parent").start()
