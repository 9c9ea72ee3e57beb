"""IPMI, as ipmitool speaks it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Generator

import pytest

from tests.lab.bmc.harness import World, ipmi, need_ipmitool

Tool = Callable[..., str]


@pytest.fixture
def tool(lab: World) -> Generator[Tool, None, None]:
    """ipmitool, with the server's credentials."""
    need_ipmitool()
    with ipmi(lab) as port:

        def run(*arguments: str, password: str = lab.servers[0].bmc.password) -> str:
            login = ["-H", "127.0.0.1", "-p", str(port), "-U", lab.servers[0].bmc.username, "-E", "-R", "2", "-N", "2"]
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
