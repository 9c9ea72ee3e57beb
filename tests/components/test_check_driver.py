"""The checks of some nodes: what the command is asked for, and what it makes of servers that answer over SSH."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from metal_ipi.components.checks import driver
from metal_ipi.components.checks.driver import Target, check_all, targets
from metal_ipi.components.checks.node_check import Expectation, variables
from metal_ipi.components.checks.pool_check import request, results
from tests.provider.ssh_servers import key, private, public

_NODES = [
    Expectation(
        hostname=f"w-{number}.lab.test",
        metadata_hostname=f"w-{number}",
        public_ipv4=f"198.51.100.{number}",
        private_ipv4=f"203.0.113.{number}",
        platform_id="packet",
        release="9.8",
        kernel_arguments=("console=ttyS0", "quiet"),
        links=(f"bond0=active-backup/0{number}",),
    )
    for number in (1, 2)
]


@pytest.mark.parametrize("nodes", [_NODES, _NODES[:1]], ids=["two", "one"])
def test_what_is_the_same_for_all_stands_once_and_each_node_is_asked_for_all_of_its_own(
    nodes: list[Expectation],
) -> None:
    text = request([(node, f"id-{node.metadata_hostname}", "ssh-ed25519 A") for node in nodes])
    assert [(t.name, t.address, t.host_key, t.variables) for t in targets(json.loads(text))] == [
        (node.hostname, node.public_ipv4, "ssh-ed25519 A", variables(node)) for node in nodes
    ]
    assert text.count("console=ttyS0") == 1 and all(f"id-{node.metadata_hostname}" in text for node in nodes)


@asynccontextmanager
async def _server(
    client: asyncssh.SSHKey, host: asyncssh.SSHKey, answer: Any, busy: float = 0.0
) -> AsyncGenerator[int]:
    """A node that answers a script by `answer(script)`: standard output, standard error, status. It takes `busy`
    seconds to let somebody in."""

    class Busy(asyncssh.SSHServer):
        async def begin_auth(self, username: str) -> bool:
            await asyncio.sleep(busy)
            return True

    async def session(process: asyncssh.SSHServerProcess[str]) -> None:
        out, err, status = answer(process.command)
        process.stdout.write(out)
        process.stderr.write(err)
        process.exit(status)

    keys = asyncssh.import_authorized_keys(public(client))
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=Busy,
        server_host_keys=[host],
        authorized_client_keys=keys,
        process_factory=session,
    )
    async with server:
        yield int(server.get_port())


@pytest.mark.anyio
@pytest.mark.servers
async def test_all_nodes_are_asked_and_each_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_PAUSE_SECONDS", 0.01)
    client, host = key(), key()
    asked: list[str] = []

    def passes(script: str) -> tuple[str, str, int]:
        asked.append(script)
        return "hostname\tpassed\tx\n", "", 0

    answers = {
        "good": passes,
        "other": lambda _: ("hostname\tfailed\ty\n", "other failed: hostname: read 'y', expected 'other'\n", 1),
        "chatty": lambda _: ("motd of the day\n", "", 0),
        "impostor": passes,
    }
    async with AsyncExitStack() as stack:
        nodes = [
            Target(
                name=name,
                address="127.0.0.1",
                host_key=public(host if name != "impostor" else key()),
                variables={"EXPECTED_HOSTNAME": name},
                port=await stack.enter_async_context(_server(client, host, answer)),
            )
            for name, answer in answers.items()
        ]
        silent = dataclasses.replace(nodes[0], name="silent", port=1)
        passed, failures = await check_all([*nodes, silent], private(client))
    assert passed == {"good": "hostname\tpassed\tx"}
    assert results(json.dumps(passed))["good"] == [{"name": "hostname", "status": "passed", "observed": "x"}]
    assert len(asked) == 1 and asked[0].startswith("EXPECTED_HOSTNAME=good\n")
    assert failures[0] == "other failed: hostname: read 'y', expected 'other'"
    assert failures[1].startswith("chatty: a node check printed 'motd of the day'")
    assert failures[2].startswith("impostor: SSH at 127.0.0.1: ")
    assert failures[3].startswith("silent: no SSH connection to 127.0.0.1 after 10 attempts: ")
    assert len(failures) == 4


@pytest.mark.anyio
@pytest.mark.servers
async def test_a_node_that_is_busy_is_given_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(driver, "_DIAL_SECONDS", 0.2)
    client, host = key(), key()
    async with _server(client, host, lambda _: ("hostname\tpassed\tx\n", "", 0), busy=1.0) as port:
        node = Target(name="busy", address="127.0.0.1", host_key=public(host), variables={}, port=port)
        assert await check_all([node], private(client)) == ({"busy": "hostname\tpassed\tx"}, [])
        monkeypatch.setattr(driver, "_PATIENCE_SECONDS", 0.7)
        passed, failures = await check_all([node], private(client))
    assert (passed, len(failures)) == ({}, 1)
    assert "busy: no SSH connection to 127.0.0.1 after 3 attempts: no answer within" in failures[0]


@pytest.mark.programs
def test_a_request_that_is_none_is_told() -> None:
    command = [sys.executable, "-m", driver.__name__]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, input='{"nodes": [[]]}', capture_output=True, text=True, cwd=root, check=False)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("the request is incomplete: KeyError")
