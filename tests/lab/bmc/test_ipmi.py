"""IPMI, as ipmitool speaks it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from lab import facts
from lab.facts import Rack
from lab.network import plan
from tests.lab.bmc.harness import World
from tests.lab.openshift import kinds

ROOT = Path(__file__).resolve().parents[3]
Tool = Callable[..., str]


@pytest.fixture
def tool(lab: World) -> Generator[Tool, None, None]:
    """ipmitool, with the server's credentials."""
    if shutil.which("ipmitool") is None:
        pytest.skip("ipmitool is not installed (package ipmitool)")
    known = facts.ensure(lab.layout, "simulated", kinds.of(Path("unused")), rack=1)
    rack = Rack(servers=lab.servers, gateway=plan.GATEWAY, prefix=24, nameserver=plan.DNS)
    replace(known, rack=rack).save(lab.layout)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "lab.bmc.ipmi", "--state", str(lab.layout.state), "--port", port]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        assert serving.stdout.readline() == "IPMI of 1 BMCs\n"

        def run(*arguments: str, password: str = lab.servers[0].bmc.password) -> str:
            login = ["-H", "127.0.0.1", "-p", port, "-U", lab.servers[0].bmc.username, "-E", "-R", "2", "-N", "2"]
            environment = {**os.environ, "IPMI_PASSWORD": password}
            done = subprocess.run(
                ["ipmitool", "-I", "lanplus", *login, *arguments],
                env=environment,
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            return done.stdout.strip() if done.returncode == 0 else f"failed: {done.stderr}"

        yield run
        serving.kill()


def test_power_and_boot_device(lab: World, tool: Tool) -> None:
    assert tool("chassis", "power", "status") == "Chassis Power is off"
    assert tool("chassis", "bootdev", "pxe") == "Set Boot Device to pxe"
    assert "Force PXE" in tool("chassis", "bootparam", "get", "5")
    tool("chassis", "power", "on")
    assert tool("chassis", "power", "status") == "Chassis Power is on"
    tool("chassis", "power", "cycle")
    tool("chassis", "bootdev", "pxe", "options=persistent")
    tool("chassis", "power", "reset")
    tool("chassis", "power", "reset")
    assert [boot[0] for boot in lab.machines.boots] == ["network", "disk", "network", "network"]
    tool("chassis", "power", "soft")
    assert tool("chassis", "power", "status") == "Chassis Power is off"
    assert lab.machines.calls[-1] == ("shutdown", lab.servers[0].uuid)


def test_a_wrong_password_is_refused(tool: Tool) -> None:
    assert tool("chassis", "power", "status", password="wrong").startswith("failed: ")
