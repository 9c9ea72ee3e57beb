"""A project of its own for the tests of the commands: the real engine, a small plug-in, and the lab's Metal API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.lab.metal_api.harness import IDENTITY, served

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]

PROGRAM = """
import os
import pulumi

def device(name, **extra):
    tags = ["metal-ipi", "metal-ipi:stack=t", "metal-ipi:cluster=c.test", "metal-ipi:role=worker"]
    seconds = float(os.environ.get("SLOW", "0"))
    inputs = {"hostname": name, "tags": tags, "seconds": seconds, **extra}
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


class Metal:
    """A client of the Metal API, which runs in a thread of this process."""

    def __init__(self, url: str) -> None:
        self.environment = {
            "METAL_API_URL": url,
            "TEST_METAL_TOKEN": IDENTITY.token,
            "TEST_METAL_PROJECT": IDENTITY.project_id,
        }
        self._settings: dict[str, Any] = {"base_url": url, "headers": {"X-Auth-Token": IDENTITY.token}, "timeout": 10}

    def devices(self) -> dict[str, str]:
        """Host name by id of all devices."""
        return {device["id"]: device["hostname"] for device in self._call("GET", params={"per_page": 100})["devices"]}

    def order(self, hostname: str, *tags: str) -> str:
        """Order a device; returns its id."""
        order = {"hostname": hostname, "metro": "lb", "plan": "c3.small.x86", "operating_system": "custom_ipxe"}
        return self._call("POST", json={**order, "userdata": "#!ipxe\nshell", "tags": tags})["id"]

    def _call(self, method: str, **options: Any) -> dict[str, Any]:
        with httpx.Client(**self._settings) as client:
            return (
                client.request(method, f"/projects/{IDENTITY.project_id}/devices", **options).raise_for_status().json()
            )


class SmallProject:
    """A project below a directory, and the commands that are run on it."""

    def __init__(self, root: Path, metal: Metal) -> None:
        self.root = root
        self.metal = metal
        self._started: list[subprocess.Popen[str]] = []
        _link("stacks", root, "program.py")
        (root / "stacks" / "program.py").write_text(PROGRAM)
        _link("metal_ipi", root, "stacks")
        (root / "metal_ipi" / "stacks").symlink_to("../stacks")
        providers = [{"name": name, "path": str(HERE / "plugins")} for name in ("equinix-metal", "metal-ipi")]
        project = {"name": "metal-ipi", "runtime": "python", "stackConfigDir": "stacks"}
        (root / "Pulumi.yaml").write_text(yaml.safe_dump({**project, "plugins": {"providers": providers}}))
        self.configure()

    def configure(self, **extra: Any) -> None:
        """Write the stack file."""
        platform = {"type": "equinix-metal", "projectId": IDENTITY.project_id, "authToken": IDENTITY.token}
        config = {"clusterName": "c", "baseDomain": "test", "platform": platform, **extra}
        document = {"config": {f"metal-ipi:{key}": value for key, value in config.items()}}
        (self.root / "stacks" / "Pulumi.t.yaml").write_text(yaml.safe_dump(document))

    def close(self) -> None:
        """End what a failed test left running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def start(self, command: str, *before: str, **env: str) -> subprocess.Popen[str]:
        """Start a command; `before` is a command line that runs it."""
        process = subprocess.Popen(
            [*before, sys.executable, "-m", "tools", "--root", str(self.root), command, "--stack", "t"],
            cwd=REPOSITORY,
            env={**os.environ, **self.metal.environment, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        self._started.append(process)
        return process

    def ended(self, command: str, *before: str, status: int = 0, **env: str) -> tuple[str, str]:
        """Run a command to its end; returns what it printed on standard output and on standard error."""
        with self.start(command, *before, **env) as process:
            out, err = process.communicate(timeout=120)
        assert process.returncode == status, f"{command} ended with {process.returncode}\n{out}\n{err}"
        return out, err

    def run(self, command: str, *before: str, status: int = 0, **env: str) -> str:
        """The same; returns all that it printed."""
        return "".join(self.ended(command, *before, status=status, **env))

    def state_ids(self) -> dict[str, str]:
        """Host name and id of each device in the state."""
        (file,) = self.root.glob(".state/stacks/t/backend/.pulumi/stacks/*/t.json")
        latest = json.loads(file.read_text())["checkpoint"].get("latest") or {}
        return {
            r["inputs"]["hostname"]: r["id"] for r in latest.get("resources") or [] if r["type"].endswith(":Device")
        }


def _link(room: str, root: Path, but: str) -> None:
    """Give a project all that is in a room, but for one thing and the stack files."""
    (root / room).mkdir(parents=True)
    for path in (REPOSITORY / room).iterdir():
        if path.name not in (but, "__pycache__") and path.suffix != ".yaml":
            (root / room / path.name).symlink_to(path)


@contextmanager
def small_project(directory: Path) -> Generator[SmallProject, None, None]:
    """A project of which nothing is up, and an empty Metal API."""
    with served(directory / "metal") as (url, lab):
        lab.clock.time = datetime.now(UTC)  # recovery compares the age of devices with the run's
        project = SmallProject(directory / "project", Metal(url))
        try:
            yield project
        finally:
            project.close()
