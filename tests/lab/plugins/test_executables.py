"""The executables, over gRPC as the engine speaks it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2

from tests.lab.metal_api.harness import IDENTITY
from tests.lab.plugins.emulated import Emulation
from tests.lab.plugins.harness import PLUGINS, urn
from tests.lab.plugins.metal_types import DEVICE as INPUTS
from tests.lab.plugins.metal_types import PROJECT

LOCAL = urn("command:local:Command")
DEVICE = urn("equinix-metal:index/device:Device")
POOL = urn("metal-ipi:endpoints:MetalLb$kubernetes:metallb.io/v1beta1:IPAddressPool")
SLOWEST_START_SECONDS = 10.0
"""Measured 0.3 s on an idle machine; a hundredfold slower start than a Go plug-in's must not slip in."""


class Engine(engine_pb2_grpc.EngineServicer):
    """Hears what a plug-in says."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, bool, str, str]] = []

    def Log(self, request: Any, context: Any) -> Any:
        self.heard.append((request.severity, request.ephemeral, request.message, request.urn))
        return empty_pb2.Empty()


@contextmanager
def plugin(name: str, **values: str) -> Generator[tuple[Any, Engine]]:
    """A running plug-in, and the engine it talks to. It finds the interpreter of the tests."""
    engine = Engine()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **values}
    command = [PLUGINS / f"pulumi-resource-{name}", f"127.0.0.1:{port}", "--tracing", "x"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    try:
        assert process.stdout is not None
        channel = grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}")
        with channel:
            stub: Any = provider_pb2_grpc.ResourceProviderStub(channel)
            arguments = struct_pb2.Struct()
            arguments.update({"authToken": IDENTITY.token} if name == "equinix-metal" else {})
            stub.Configure(provider_pb2.ConfigureRequest(args=arguments, acceptSecrets=True), timeout=20)
            yield stub, engine
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        server.stop(None)


def struct(values: dict[str, Any]) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(values)
    return made


def refused(call: Callable[[], Any]) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as failure:
        call()
    return failure.value


def details(error: Any) -> provider_pb2.ErrorResourceInitFailed:
    """What the engine keeps of a resource that is there but not as wished."""
    metadata = dict(error.trailing_metadata())
    status = status_pb2.Status()
    status.ParseFromString(metadata["grpc-status-details-bin"])
    found = provider_pb2.ErrorResourceInitFailed()
    assert status.details[0].Unpack(found)
    return found


def test_commands_run_and_are_heard() -> None:
    started = time.monotonic()
    with plugin("command", MARK="outer") as (stub, engine):
        assert time.monotonic() - started < SLOWEST_START_SECONDS
        properties = struct({"create": "echo one; echo two >&2; echo $MARK${PYTHONPATH+ leaked}"})
        made = stub.Create(provider_pb2.CreateRequest(urn=LOCAL, properties=properties), timeout=20)
        assert made.properties["stdout"] == "one\nouter" + (" leaked" if "PYTHONPATH" in os.environ else "")
        assert {(severity, ephemeral) for severity, ephemeral, _, _ in engine.heard} == {(1, True)}
        assert {message for _, _, message, _ in engine.heard} >= {"one", "two"}
        assert {said_of for _, _, _, said_of in engine.heard} == {LOCAL}
        failing = provider_pb2.CreateRequest(urn=LOCAL, properties=struct({"create": "exit 3"}))
        error: Any = refused(lambda: stub.Create(failing, timeout=20))
        assert error.details() == 'exit status 3: running "exit 3":\n'
        unknown = provider_pb2.CheckRequest(urn=urn("command:remote:CopyFile"))
        error = refused(lambda: stub.Check(unknown, timeout=20))
        assert "does not implement the resource type command:remote:CopyFile" in error.details()


def test_a_device_that_is_cancelled_reaches_the_engine_with_its_id(metal: Emulation) -> None:
    metal.fault("never_boots", count=None)
    with plugin("equinix-metal", METAL_API_URL=metal.url) as (stub, engine):
        request = provider_pb2.CreateRequest(urn=DEVICE, properties=struct(INPUTS), timeout=60)
        creating = stub.Create.future(request, timeout=20)
        deadline = time.monotonic() + 15
        while not engine.heard and time.monotonic() < deadline:
            time.sleep(0.02)
        assert engine.heard[0][2].startswith("lab-worker-0: ")
        stub.Cancel(empty_pb2.Empty(), timeout=20)
        error: Any = refused(creating.result)
        kept = details(error)
        assert [kept.id] == metal.ids(f"/projects/{PROJECT}/devices")
        assert kept.properties["state"] == "provisioning"
        assert list(kept.reasons) == [error.details()]
        assert "cancelled while waiting for device lab-worker-0" in error.details()


def test_kubernetes_answers_soon_and_in_sentences() -> None:
    started = time.monotonic()
    with plugin("kubernetes") as (stub, engine):
        assert time.monotonic() - started < SLOWEST_START_SECONDS
        inputs = struct({"metadata": {"name": "a"}, "spec": {"addresses": ["192.0.2.0/30"]}})
        checked = stub.Check(provider_pb2.CheckRequest(urn=POOL, news=inputs), timeout=20)
        assert checked.inputs["apiVersion"] == "metallb.io/v1beta1"
        previewed = provider_pb2.CreateRequest(urn=POOL, properties=checked.inputs, preview=True)
        assert stub.Create(previewed, timeout=20).properties["spec"]["addresses"][0] == "192.0.2.0/30"
        assert "the provider has no kubeconfig" in engine.heard[0][2]
        creating = provider_pb2.CreateRequest(urn=POOL, properties=checked.inputs)
        error: Any = refused(lambda: stub.Create(creating, timeout=20))
        assert error.details() == "the provider has no kubeconfig: set it to that of the cluster"
        unknown = provider_pb2.CheckRequest(urn=urn("kubernetes:apps/v1:DaemonSet"))
        error = refused(lambda: stub.Check(unknown, timeout=20))
        assert "does not implement the resource type kubernetes:apps/v1:DaemonSet" in error.details()
