"""Connections to nodes that end in the middle: a machine that loses its power is silent, not an error of ours."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from metal_ipi.provider.gates import ssh
from metal_ipi.provider.gates.ssh import NotYet
from metal_ipi.provider.resources.gate_kinds import GateLogs, GateNode
from tests.provider import ssh_servers


@pytest.mark.parametrize("error", [ConnectionResetError(104, "Connection reset by peer"), BrokenPipeError(32, "gone")])
async def test_a_connection_that_is_lost_is_not_yet(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    class Connection(contextlib.AsyncExitStack):
        async def run(self, *_: Any, **__: Any) -> Any:
            raise error

    async def connect(*_: Any, **__: Any) -> Connection:
        return Connection()

    monkeypatch.setattr(ssh, "_connect", connect)
    key = ssh_servers.public(ssh_servers.key())
    node = GateNode(name="worker-0", address="127.0.0.1", host_key=key)
    access = GateLogs(nodes=(node,))
    with pytest.raises(NotYet, match="SSH: the connection was lost"):
        await ssh.run(node, access, "true")
