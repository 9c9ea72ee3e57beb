"""SSH to nodes and consoles: single attempts, with every possible error as a short text."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator
from typing import Any

from metal_ipi.provider.resources.gate_kinds import GateLogs, GateNode

_TCP_TIMEOUT = 2.0
_LOGIN_TIMEOUT = 60.0
"""Seconds. With three emulated machines at once on a busy system, a login took up to 17 s."""
_COMMAND_TIMEOUT = 30.0
_CONSOLE_SILENCE = 2.0
"""After so many seconds of silence a console is considered to have printed everything."""


class WrongHostKey(Exception):
    """The node's host key is not the pinned one."""


class NotYet(Exception):
    """This attempt failed; the message says why."""


class CommandFailed(NotYet):
    """A command ended with a status other than 0."""


@contextlib.asynccontextmanager
async def login(node: GateNode, user: str, private_key: str) -> AsyncGenerator[Any, None]:
    """A connection to a node with a verified host key. Raises NotYet if it cannot be made, or is lost; WrongHostKey."""
    import asyncssh

    connection = await _connect(
        node.address,
        node.port or 22,
        user,
        private_key,
        known_hosts=([asyncssh.import_public_key(node.host_key)], [], []),
        timeout=_LOGIN_TIMEOUT,
    )
    try:
        async with connection:
            yield connection
    except ConnectionError as error:  # a machine that loses its power
        raise NotYet(f"SSH: the connection was lost ({_reason(error)})") from None


async def run(
    node: GateNode, access: GateLogs, command: str, given: str = "", *, timeout: float = _COMMAND_TIMEOUT
) -> str:
    """Run a command on a node, with `given` as standard input; returns its output. Raises NotYet if that fails."""
    import asyncssh

    async with login(node, access.user or "core", access.private_key or "") as connection:
        try:
            source: dict[str, Any] = {"input": given} if given else {"stdin": asyncssh.DEVNULL}
            done = await connection.run(command, **source, timeout=timeout, errors="replace")
        except asyncssh.Error as error:
            raise NotYet(f"SSH: {error.reason}") from None
    if done.exit_status is None:
        raise NotYet("SSH: the connection ended before the command did")
    if done.exit_status != 0:
        said = str(done.stderr or done.stdout).strip()[-300:]
        raise CommandFailed(f"`{command.partition(' &&')[0]}` ended with {done.exit_status}: {said}")
    return str(done.stdout)


async def answers(address: str, port: int) -> bool:
    """Whether a TCP connection can be made."""
    try:
        (await _tcp(address, port)).close()
    except OSError:
        return False
    return True


def has_route(ipv6: str) -> bool:
    """Whether this machine has a route to an IPv6 address. Sends nothing."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.connect((ipv6, 22))
    except OSError:
        return False
    return True


async def _connect(host: str, port: int, user: str, private_key: str, *, known_hosts: Any, timeout: float) -> Any:
    import asyncssh

    try:
        sock = await _tcp(host, port)
        return await asyncssh.connect(
            host,  # otherwise asyncssh asks the socket, which has no peer any more after a reset
            port,
            sock=sock,
            username=user,
            client_keys=[asyncssh.import_private_key(private_key)],
            known_hosts=known_hosts,
            agent_path=None,
            config=None,
            connect_timeout=timeout,
        )
    except asyncssh.HostKeyNotVerifiable:
        raise WrongHostKey("its SSH host key is not the pinned one") from None
    except asyncssh.KeyImportError:
        raise NotYet("the SSH key or host key given cannot be read") from None
    except asyncssh.PermissionDenied:
        raise NotYet(f"SSH answers, but refuses the login of {user}") from None
    except TimeoutError:
        raise NotYet("no answer") from None
    except OSError as error:
        raise NotYet(_reason(error)) from None
    except asyncssh.Error as error:
        raise NotYet(f"SSH: {error.reason}") from None


def _reason(error: OSError) -> str:
    """The system's plain message of a connection error; asyncio's own message adds addresses."""
    number = error.errno or 0
    # Errors of name resolution have negative numbers.
    return (os.strerror(number) if number > 0 else error.strerror or str(error)).lower()


async def _tcp(host: str, port: int) -> socket.socket:
    """Connect with a short timeout of its own: a machine that is still starting does not answer, while a slow login
    needs longer."""
    loop = asyncio.get_running_loop()
    found = await asyncio.wait_for(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM), _TCP_TIMEOUT)
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    try:
        await asyncio.wait_for(loop.sock_connect(sock, address), _TCP_TIMEOUT)
    except BaseException:
        sock.close()
        raise
    return sock


async def read_console(console: str, private_key: str | None, *, seconds: float) -> str:
    """Read a serial-over-SSH console for some seconds; returns what it printed.

    Metal publishes no host keys of its consoles, so any key is accepted; nothing is ever typed. `console` is
    `<user>@<host>` or `<user>@<host>:<port>`.
    """
    import asyncssh

    user, _, place = console.partition("@")
    host, _, port = place.partition(":")
    if private_key is None:
        raise NotYet("there is no SSH key for the console")
    connection = await _connect(host, int(port or 22), user, private_key, known_hosts=None, timeout=10)
    parts: list[str] = []

    async def read(process: Any) -> None:
        while part := await asyncio.wait_for(process.stdout.read(65536), _CONSOLE_SILENCE):
            parts.append(part)

    async with connection:
        try:
            process = await connection.create_process(term_type="vt100", encoding="utf-8", errors="replace")
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                await asyncio.wait_for(read(process), seconds)
            process.close()
        except asyncssh.Error as error:
            if not parts:
                raise NotYet(f"the console says: {error.reason}") from None
    return "".join(parts)
