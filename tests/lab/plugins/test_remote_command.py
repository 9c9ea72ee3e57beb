"""`command:remote:Command` against an SSH server on loopback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import asyncssh
import pytest
from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue

from lab.plugins.base import NotInTheLab, PluginError
from lab.plugins.command import remote
from lab.plugins.command.main import CommandPlugin
from lab.plugins.values import plain_map, wrap_map
from tests.lab.plugins.harness import Driver, Heard, eventually, urn

TOKEN = "command:remote:Command"
HOST_KEY = asyncssh.generate_private_key("ssh-ed25519")
OTHER_KEY = asyncssh.generate_private_key("ssh-ed25519")
USER_KEY = asyncssh.generate_private_key("ssh-ed25519")


def public(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode().strip()


@dataclass
class Server:
    """What the program needs to know of the server, and what the server saw."""

    port: int = 0
    commands: list[str] = field(default_factory=list[str])

    def connection(self, **values: Any) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": "core",
            "privateKey": USER_KEY.export_private_key().decode(),
            "hostKey": public(HOST_KEY),
            "dialErrorLimit": 0,
            **values,
        }


@pytest.fixture
async def server() -> AsyncGenerator[Server]:
    made = Server()

    async def handle(process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        made.commands.append(command)
        if process.get_extra_info("username") != "core":
            process.exit(1)
            return
        if command == "echo":
            process.stdout.write(await process.stdin.read())
        elif command == "fail":
            process.stdout.write(b"out\n")
            process.stderr.write(b"err\n")
            process.exit(7)
            return
        elif command == "signal":
            process.exit_with_signal("TERM")
            return
        elif command == "drop":
            process.channel.get_connection().abort()
            return
        elif command == "hang":
            await process.wait_closed()
            made.commands.append("was closed")
        else:
            process.stdout.write(b"hi\n\n")
            process.stderr.write(b"warn\n")
        process.exit(0)

    listener = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[HOST_KEY],
        authorized_client_keys=asyncssh.import_authorized_keys(public(USER_KEY)),
        process_factory=handle,
        encoding=None,
    )
    made.port = listener.get_port()
    try:
        yield made
    finally:
        listener.close()
        await listener.wait_closed()


@pytest.fixture
def log() -> Heard:
    return Heard()


@pytest.fixture
def driver(log: Heard) -> Driver:
    return Driver(CommandPlugin(log), TOKEN)


async def test_runs_the_command_and_keeps_its_output(server: Server, driver: Driver, log: Heard) -> None:
    wanted = {"create": "hello", "connection": server.connection(), "addPreviousOutputInEnv": False}
    inputs = await driver.inputs(wanted)
    identifier, state = await driver.create(inputs)
    assert identifier.startswith("it")
    assert plain_map(state)["stdout"] == "hi\n"
    assert plain_map(state)["stderr"] == "warn"
    assert server.commands == ["hello"]
    assert log.lines == ["hi", "", "warn"]
    _, state = await driver.create({**inputs, "create": "echo", "stdin": "from here", "logging": "none"})
    assert plain_map(state)["stdout"] == "from here"
    assert log.lines == ["hi", "", "warn"]


async def test_failures_tell_how_it_ended(server: Server, driver: Driver) -> None:
    for command, how in (
        ("fail", 'Process exited with status 7: running "fail":\nout\nerr\n'),
        ("signal", 'Process exited with signal TERM: running "signal":\n'),
    ):
        with pytest.raises(PluginError) as failure:
            await driver.create({"create": command, "connection": server.connection()})
        assert str(failure.value) == how
    with pytest.raises(PluginError, match='running "drop"'):
        await driver.create({"create": "drop", "connection": server.connection()})


async def test_host_keys_are_pinned(server: Server, driver: Driver) -> None:
    wrong = server.connection(hostKey=public(OTHER_KEY))
    with pytest.raises(PluginError, match=r"cannot connect to 127\.0\.0\.1:\d+ after 0 failed attempts"):
        await driver.create({"create": "hello", "connection": wrong})
    with pytest.raises(PluginError, match="connection: the key cannot be used"):
        await driver.create({"create": "hello", "connection": server.connection(hostKey="rubbish")})
    assert server.commands == []


async def test_only_the_given_key_counts(server: Server, driver: Driver) -> None:
    other = server.connection(privateKey=OTHER_KEY.export_private_key().decode())
    with pytest.raises(PluginError, match=r"cannot connect to .* Permission denied"):
        await driver.create({"create": "hello", "connection": other})


async def test_dials_again_until_the_limit(monkeypatch: pytest.MonkeyPatch, driver: Driver, log: Heard) -> None:
    monkeypatch.setattr(remote, "FIRST_DELAY_SECONDS", 0.01)
    closed = Server(port=1).connection(dialErrorLimit=2)
    with pytest.raises(PluginError, match="after 2 failed attempts"):
        await driver.create({"create": "hello", "connection": closed})
    assert [line.split(" failed")[0] for line in log.lines] == ["Dial 1/2", "Dial 2/2"]


async def test_a_server_that_does_not_speak_is_given_up(driver: Driver) -> None:
    silent: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(lambda _, writer: silent.append(writer), "127.0.0.1", 0) as listener:
        connection = Server(listener.sockets[0].getsockname()[1]).connection(perDialTimeout=0.1)
        with pytest.raises(PluginError, match=r"no SSH connection within 0\.1 s"):
            await driver.create({"create": "hello", "connection": connection})
        for writer in silent:
            writer.close()


async def test_the_connection_is_secret_and_has_defaults(driver: Driver) -> None:
    keys = {"privateKey": "k", "hostKey": "k"}
    given = {"create": "x", "connection": {"host": "h", **keys}, "addPreviousOutputInEnv": False}
    request = api.CheckRequest(urn(TOKEN), {}, wrap_map(given), b"")
    inputs = (await driver.plugin.check(request)).inputs or {}
    assert inputs["connection"].is_secret
    defaults = {"port": 22.0, "user": "root", "dialErrorLimit": 10.0, "perDialTimeout": 15.0}
    assert plain_map(inputs)["connection"] == {"host": "h", **keys, **defaults}
    _, failures = await driver.check({"create": "x"})
    assert failures.keys() == {"connection", "addPreviousOutputInEnv"}
    _, failures = await driver.check({**given, "connection": {**keys, "port": "22", "hots": "h"}})
    assert failures.keys() == {"connection.host", "connection.port", "connection.hots"}
    for wrong, what in (
        ({"connection": {"host": "h", **keys, "proxy": {"host": "p"}}}, "input connection.proxy"),
        ({"environment": {"A": "b"}}, "input environment"),
        ({"addPreviousOutputInEnv": True}, "input addPreviousOutputInEnv True"),
    ):
        with pytest.raises(NotInTheLab, match=what):
            await driver.check({**given, **wrong})


async def test_another_connection_is_an_update_told_in_one_place(driver: Driver) -> None:
    def secret(host: str) -> PropertyValue:
        return PropertyValue(wrap_map({"host": host}), is_secret=True)

    request = api.DiffRequest(
        urn(TOKEN), "id", {"connection": secret("a")}, {"connection": secret("b")}, ignore_changes=[]
    )
    response = await driver.plugin.diff(request)
    assert {path: entry.kind.name for path, entry in response.detailed_diff.items()} == {"connection": "UPDATE"}


async def test_a_hundred_at_once_are_cheap(server: Server, driver: Driver) -> None:
    inputs = {"create": "hello", "connection": server.connection(perDialTimeout=60), "logging": "none"}
    started = time.process_time()
    await asyncio.gather(*(driver.create(inputs) for _ in range(100)))
    # Client and server together: measured 1.5 s; sequential or key-deriving code would take many times that.
    assert time.process_time() - started < 8
    assert len(server.commands) == 100


async def test_a_cancelled_command_closes_its_connection(server: Server, driver: Driver) -> None:
    task = asyncio.ensure_future(driver.create({"create": "hang", "connection": server.connection()}))
    await eventually(lambda: bool(server.commands))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: server.commands == ["hang", "was closed"])
