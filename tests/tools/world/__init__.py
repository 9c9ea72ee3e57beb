"""A project of its own for the driver's tests: real engine, real plug-ins, a Metal API of a few lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.tools.world.metal import PROJECT, TOKEN, MetalServer

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]

PROGRAM = """
import os
import pulumi
from tests.tools.world.metal import PROJECT

def device(name, **extra):
    tags = ["metal-ipi", "metal-ipi:stack=t", "metal-ipi:cluster=c.test", "metal-ipi:role=worker"]
    seconds = float(os.environ.get("SLOW", "0"))
    inputs = {"hostname": name, "tags": tags, "projectId": PROJECT, "seconds": seconds, **extra}
    return pulumi.CustomResource("equinix-metal:index/device:Device", name, inputs)

def main():
    config = pulumi.Config()
    machines = [device(f"worker-{n}") for n in range(config.get_int("workers") or 2)]
    for cause in [config.get("fail")] * bool(config.get("fail")):
        device("broken", fail=cause)
    if config.get("raise"):
        raise KeyError(config.get("raise"))
    seconds = float(os.environ.get("GATE", "0"))
    pulumi.CustomResource(
        "metal-ipi:index:Gate", "reachable", {"seconds": seconds, "node": "worker-0"},
        opts=pulumi.ResourceOptions(depends_on=machines),
    )
    pulumi.export("cluster", "t")
    pulumi.export("api", {"url": "https://api.example.test:6443"})
    pulumi.export("kubeconfig", pulumi.Output.secret("a very secret kubeconfig"))
    pulumi.export("nodes", [{
        "name": "worker-0", "role": "worker", "public_ipv4": "198.51.100.1", "private_ipv4": "203.0.113.1",
        "checks": [{"name": "ignition", "status": "ok", "observed": ""},
                   {"name": "afterburn", "status": "skipped", "observed": "not built"}],
    }])
"""


class World:
    """A project below a directory, and the commands of the driver run on it."""

    def __init__(self, root: Path, metal: MetalServer, config: Mapping[str, Any] | None = None) -> None:
        self.root = root
        self.metal = metal
        self._started: list[subprocess.Popen[str]] = []
        (root / "stacks").mkdir(parents=True)
        (root / "stacks" / "__init__.py").write_text("")
        for part in ("plain.py", "problems.py", "sections"):  # what the driver itself needs of that package
            (root / "stacks" / part).symlink_to(REPOSITORY / "stacks" / part)
        (root / "stacks" / "program.py").write_text(PROGRAM)
        providers = [{"name": name, "path": str(HERE / "plugins")} for name in ("equinix-metal", "metal-ipi")]
        project = {"name": "metal-ipi", "runtime": "python", "stackConfigDir": "stacks"}
        (root / "Pulumi.yaml").write_text(yaml.safe_dump({**project, "plugins": {"providers": providers}}))
        self.configure(**(config or {}))

    def configure(self, **extra: Any) -> None:
        platform = {"type": "equinix-metal", "projectId": PROJECT, "authToken": TOKEN}
        config = {"clusterName": "c", "baseDomain": "test", "platform": platform, **extra}
        document = {"config": {f"metal-ipi:{key}": value for key, value in config.items()}}
        (self.root / "stacks" / "Pulumi.t.yaml").write_text(yaml.safe_dump(document))

    def close(self) -> None:
        """End what a failed test left running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def start(self, command: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tools", "--root", str(self.root), command, "--stack", "t"],
            cwd=REPOSITORY,
            env={**os.environ, "METAL_API_URL": self.metal.url, "TEST_METAL_TOKEN": TOKEN, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        self._started.append(process)
        return process

    def state_ids(self) -> dict[str, str]:
        """Name and id of each device in the state."""
        files = list(self.root.glob(".state/stacks/t/backend/.pulumi/stacks/*/t.json"))
        latest = json.loads(files[0].read_text())["checkpoint"].get("latest") or {}
        return {
            r["inputs"]["hostname"]: r["id"] for r in latest.get("resources") or [] if r["type"].endswith(":Device")
        }

    def run(self, command: str, *, status: int = 0, **env: str) -> str:
        """Run a command to its end; returns what it printed, standard error last."""
        with self.start(command, **env) as process:
            out, err = process.communicate(timeout=120)
        assert process.returncode == status, f"{command} ended with {process.returncode}\n{out}\n{err}"
        return out + err
