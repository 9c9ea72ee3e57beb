"""Plugins as processes: ours starts fast, and all end when the engine that started them is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime import proto

from metal_ipi.provider import server
from metal_ipi.provider.plugin import MetalIpiProvider
from metal_ipi.provider.values import to_wire_map
from tests.end_to_end import processes
from tests.real_engine import PLUGINS, ROOT

pytestmark = pytest.mark.servers

EXECUTABLES = sorted(path for folder in PLUGINS for path in folder.glob("pulumi-resource-*"))


@pytest.mark.parametrize("plugin", EXECUTABLES, ids=lambda path: path.name)
def test_a_plugin_ends_with_a_killed_engine(plugin: Path) -> None:
    # The «engine» starts the plugin, passes on its port and process id, and hangs.
    engine = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.argv[1], '127.0.0.1:1'], stdout=subprocess.PIPE, text=True)\n"
        "print(p.pid, p.stdout.readline().strip(), flush=True)\n"
        "time.sleep(60)\n"
    )
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with subprocess.Popen(
        [sys.executable, "-c", engine, plugin], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        child, port = map(int, parent.stdout.readline().split())
        assert port > 0 and processes.alive(child)
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 10
        while processes.alive(child):
            assert time.monotonic() < deadline, "the plugin outlives its engine"
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("imported", "heavy"),
    [
        ("provider.plugin, provider.types", ("httpx", "asyncssh", "lexicon", "cryptography", "dns", "boto3")),
        ("metal_ipi.stacks.program", ("httpx", "asyncssh", "lexicon", "boto3", "pulumi_kubernetes.core.v1")),
    ],
    ids=["plugin", "program"],
)
def test_nothing_heavy_is_imported_at_the_start(imported: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys, {imported}\nprint([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


async def test_what_is_kept_out_of_the_outputs_is_part_of_what_is_old() -> None:
    """A gate keeps its specification in the inputs of the state alone."""
    servicer = server.Servicer([], "1.0.0", MetalIpiProvider(), "")
    given: dict[str, Any] = {
        "kind": "ssh-reachable",
        "spec": {"nodes": [], "user": "core", "privateKey": "a key"},
        "timeoutSeconds": 3,
        "triggers": [],
    }
    outputs = {key: value for key, value in given.items() if key != "spec"} | {"passedAt": "today"}

    async def changes(spec: Mapping[str, Any], old_outputs: Mapping[str, Any] = outputs) -> list[str]:
        request = proto.DiffRequest(urn="urn:pulumi:a::b::metal-ipi:index:Gate::it", id="it")
        for name, values in (("old_inputs", given), ("olds", old_outputs), ("news", given | {"spec": spec})):
            getattr(request, name).CopyFrom(PropertyValue.marshal_map(to_wire_map(values)))
        return sorted((await servicer.Diff(request, cast(Any, None))).detailedDiff)

    spec = given["spec"]
    assert await changes(spec) == []
    assert await changes({**spec, "user": "root"}) == ["spec"]
    earlier = {**outputs, "spec": {**spec, "user": "admin"}}
    assert await changes(spec, earlier) == ["spec"], "an output of an earlier version is what is old"
