"""The executable `pulumi-resource-kubernetes`, over gRPC as the engine speaks it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pulumi.runtime.proto import provider_pb2

from tests.lab.plugins import test_executables as executables
from tests.lab.plugins.harness import urn

POOL = urn("metal-ipi:endpoints:MetalLb$kubernetes:metallb.io/v1beta1:IPAddressPool")


def test_it_answers_soon_and_in_sentences() -> None:
    started = time.monotonic()
    with executables.plugin("kubernetes") as (stub, engine, _):
        assert time.monotonic() - started < executables.SLOWEST_START_SECONDS
        inputs = executables.struct({"metadata": {"name": "a"}, "spec": {"addresses": ["192.0.2.0/30"]}})
        checked = stub.Check(provider_pb2.CheckRequest(urn=POOL, news=inputs), timeout=20)
        assert checked.inputs["apiVersion"] == "metallb.io/v1beta1"
        previewed = provider_pb2.CreateRequest(urn=POOL, properties=checked.inputs, preview=True)
        assert stub.Create(previewed, timeout=20).properties["spec"]["addresses"][0] == "192.0.2.0/30"
        assert "the provider has no kubeconfig" in engine.heard[0][2]
        creating = provider_pb2.CreateRequest(urn=POOL, properties=checked.inputs)
        error: Any = executables.refused(lambda: stub.Create(creating, timeout=20))
        assert error.details() == "the provider has no kubeconfig: set it to that of the cluster"
        unknown = provider_pb2.CheckRequest(urn=urn("kubernetes:apps/v1:Deployment"))
        error = executables.refused(lambda: stub.Check(unknown, timeout=20))
        assert "does not implement the resource type kubernetes:apps/v1:Deployment" in error.details()


def test_it_ends_with_its_engine(tmp_path: Path) -> None:
    executables.test_a_plugin_ends_with_its_engine("kubernetes", tmp_path)
