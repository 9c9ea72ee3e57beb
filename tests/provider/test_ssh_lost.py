"""Connections to nodes that end in the middle: a machine that loses its power is silent, not an error of ours."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from provider.gates import Access, Node, ssh
from provider.gates.ssh import NotYet
from tests.provider import ssh_servers


@pytest.mark.parametrize("error", [ConnectionResetError(104, "Connection reset by peer"), BrokenPipeError(32, "gone")])
def test_a_connection_that_is_lost_is_not_yet(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    class Connection(contextlib.AsyncExitStack):
        async def run(self, *_: Any, **__: Any) -> Any:
            raise error

    async def connect(*_: Any, **__: Any) -> Connection:
        return Connection()

    monkeypatch.setattr(ssh, "_connect", connect)
    key = ssh_servers.public(ssh_servers.key())
    node = Node(name="worker-0", address="127.0.0.1", host_key=key, machine_id="x", console=None, port=22)
    access = Access(nodes=(node,), user="core", private_key="", log_directory=None)
    with pytest.raises(NotYet, match="SSH: the connection was lost"):
        asyncio.run(ssh.run(node, access, "true"))
