"""`command:remote:Command` against an SSH server on loopback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
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


class _SshServer(asyncssh.SSHServer):
    connection: asyncssh.SSHServerConnection

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == "core" and key == USER_KEY.convert_to_public()


@asynccontextmanager
async def ssh_server() -> AsyncGenerator[Server, None]:
    server = Server()

    async def handle(process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        server.commands.append(command)
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
            await asyncio.sleep(60)
        else:
            process.stdout.write(b"hi\n\n")
            process.stderr.write(b"warn\n")
        process.exit(0)

    listener = await asyncssh.listen(
        "127.0.0.1", 0, server_factory=_SshServer, server_host_keys=[HOST_KEY], process_factory=handle, encoding=None
    )
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        await listener.wait_closed()


def with_server(test: Callable[[Server, Driver, Heard], Awaitable[None]]) -> None:
    async def scenario() -> None:
        log = Heard()
        async with ssh_server() as server:
            await test(server, Driver(CommandPlugin(log), TOKEN), log)

    asyncio.run(scenario())


def test_runs_the_command_and_keeps_its_output() -> None:
    async def test(server: Server, driver: Driver, log: Heard) -> None:
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

    with_server(test)


def test_failures_tell_how_it_ended() -> None:
    async def test(server: Server, driver: Driver, log: Heard) -> None:
        for command, how in (
            ("fail", 'Process exited with status 7: running "fail":\nout\nerr\n'),
            ("signal", 'Process exited with signal TERM: running "signal":\n'),
        ):
            with pytest.raises(PluginError) as failure:
                await driver.create({"create": command, "connection": server.connection()})
            assert str(failure.value) == how
        with pytest.raises(PluginError, match='running "drop"'):
            await driver.create({"create": "drop", "connection": server.connection()})

    with_server(test)


def test_host_keys_are_pinned() -> None:
    async def test(server: Server, driver: Driver, log: Heard) -> None:
        wrong = server.connection(hostKey=public(OTHER_KEY))
        with pytest.raises(PluginError, match=r"cannot connect to 127\.0\.0\.1:\d+ after 0 failed attempts"):
            await driver.create({"create": "hello", "connection": wrong})
        with pytest.raises(PluginError, match="connection: the key cannot be used"):
            await driver.create({"create": "hello", "connection": server.connection(hostKey="rubbish")})
        assert server.commands == []

    with_server(test)


def test_only_the_given_key_counts() -> None:
    async def test(server: Server, driver: Driver, log: Heard) -> None:
        other = server.connection(privateKey=OTHER_KEY.export_private_key().decode())
        with pytest.raises(PluginError, match=r"cannot connect to .* Permission denied"):
            await driver.create({"create": "hello", "connection": other})

    with_server(test)


def test_dials_again_until_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "FIRST_DELAY_SECONDS", 0.01)

    async def test(server: Server, driver: Driver, log: Heard) -> None:
        closed = server.connection(port=1, dialErrorLimit=2)
        with pytest.raises(PluginError, match="after 2 failed attempts"):
            await driver.create({"create": "hello", "connection": closed})
        assert [line.split(" failed")[0] for line in log.lines] == ["Dial 1/2", "Dial 2/2"]

    with_server(test)


def test_a_server_that_does_not_speak_is_given_up() -> None:
    async def scenario() -> None:
        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await asyncio.sleep(5)
            finally:
                writer.close()

        listener = await asyncio.start_server(silent, "127.0.0.1", 0)
        server = Server(listener.sockets[0].getsockname()[1])
        started = time.monotonic()
        with pytest.raises(PluginError, match="no SSH connection within 1 s"):
            await Driver(CommandPlugin(Heard()), TOKEN).create(
                {"create": "hello", "connection": server.connection(perDialTimeout=1)}
            )
        assert time.monotonic() - started < 3
        listener.close()

    asyncio.run(scenario())


def test_the_connection_is_secret_and_has_defaults() -> None:
    keys = {"privateKey": "k", "hostKey": "k"}

    async def test(server: Server, driver: Driver, log: Heard) -> None:
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

    with_server(test)


def test_another_connection_is_an_update_told_in_one_place() -> None:
    def secret(host: str) -> PropertyValue:
        return PropertyValue(wrap_map({"host": host}), is_secret=True)

    request = api.DiffRequest(
        urn(TOKEN), "id", {"connection": secret("a")}, {"connection": secret("b")}, ignore_changes=[]
    )
    response = asyncio.run(CommandPlugin(Heard()).diff(request))
    assert {path: entry.kind.name for path, entry in response.detailed_diff.items()} == {"connection": "UPDATE"}


def test_a_hundred_at_once_are_cheap() -> None:
    async def test(server: Server, driver: Driver, log: Heard) -> None:
        inputs = {"create": "hello", "connection": server.connection(perDialTimeout=60), "logging": "none"}
        started = time.process_time()
        await asyncio.gather(*(driver.create(inputs) for _ in range(100)))
        # Client and server together: measured 1.5 s; sequential or key-deriving code would take many times that.
        assert time.process_time() - started < 8
        assert len(server.commands) == 100

    with_server(test)


def test_a_cancelled_command_closes_its_connection() -> None:
    async def test(server: Server, driver: Driver, log: Heard) -> None:
        task = asyncio.ensure_future(driver.create({"create": "hang", "connection": server.connection()}))
        await eventually(lambda: bool(server.commands))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with_server(test)
