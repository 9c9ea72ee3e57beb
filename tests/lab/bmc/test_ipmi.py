"""IPMI, as ipmitool speaks it."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Generator

import pytest

from tests.lab.bmc.harness import World, ipmi, need_ipmitool

Tool = Callable[..., str]


@pytest.fixture
def port(lab: World) -> Generator[int, None, None]:
    """That of the first server's BMC."""
    with ipmi(lab) as port:
        yield port


@pytest.fixture
def tool(lab: World, port: int) -> Tool:
    """ipmitool, with the server's credentials."""
    need_ipmitool()

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

    return run


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


def _packet(kind: int, payload: bytes) -> bytes:
    """An IPMI 2.0 packet outside of a session (IPMI specification 2.0, table 13-8)."""
    return bytes([6, 0, 0xFF, 7, 6, kind, *bytes(8)]) + len(payload).to_bytes(2, "little") + payload


def test_a_packet_in_a_wrong_place_does_not_end_it(port: int, tool: Tool) -> None:
    """A repeated request opens another session, which the end of the first one's handshake then comes to."""
    algorithms = b"".join(bytes([kind, 0, 0, 8, 1, 0, 0, 0]) for kind in range(3))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.settimeout(10)
        wire.connect(("127.0.0.1", port))
        wire.send(_packet(0x10, bytes([1, 0, 0, 0, 7, 7, 7, 7]) + algorithms))
        session = wire.recv(1024)[24:28]
        wire.send(_packet(0x14, bytes([2, 0, 0, 0]) + session + bytes(20)))
        assert tool("chassis", "power", "status") == "Chassis Power is off"
