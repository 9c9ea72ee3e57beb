"""Runs a command over SSH. asyncssh is imported at the first use: it takes longer than the rest of the plug-in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lab.plugins.base import PluginError
from lab.plugins.command.outcome import Capture, Output, Run, environment
from lab.plugins.values import Json

if TYPE_CHECKING:
    import asyncssh

FIRST_DELAY_SECONDS, DELAY_FACTOR, LONGEST_DELAY_SECONDS = 0.1, 1.5, 5.0
"""Pauses between dials, those of the official plug-in."""


async def run_remote(run: Run) -> Output:
    """Connects, as often as the connection allows, and runs it once."""
    connection = await _dial(run)
    try:
        return await _run(connection, run)
    finally:
        connection.close()


async def _dial(run: Run) -> asyncssh.SSHClientConnection:
    import asyncssh

    wanted: dict[str, Json] = run.inputs["connection"]
    options = _options(wanted)
    limit = int(wanted.get("dialErrorLimit", 10))
    timeout = float(wanted.get("perDialTimeout", 15)) or None
    delay = FIRST_DELAY_SECONDS
    attempt = 0
    while True:
        attempt += 1
        try:
            return await asyncio.wait_for(asyncssh.connect(**options), timeout)
        except TimeoutError:
            problem = f"no SSH connection within {timeout:g} s"
        except (OSError, asyncssh.Error) as error:
            problem = str(error) or type(error).__name__
        where = f"{wanted['host']}:{options['port']}"
        if limit > -1 and attempt > limit:
            raise PluginError(f"cannot connect to {where} after {limit} failed attempts: {problem}")
        await run.status(f"Dial {attempt}/{'inf' if limit == -1 else limit} failed: retrying ({where}: {problem})")
        await asyncio.sleep(delay)
        delay = min(delay * DELAY_FACTOR, LONGEST_DELAY_SECONDS)


def _options(wanted: dict[str, Json]) -> dict[str, Any]:
    """asyncssh's options: only what the program says counts, no configuration or known hosts of the user."""
    import asyncssh

    options: dict[str, Any] = {
        "host": wanted["host"],
        "port": int(wanted.get("port", 22)),
        "username": wanted.get("user", "root"),
        "config": None,
        "known_hosts": None,
        "client_keys": None,
        "gss_host": None,
    }
    try:
        if wanted.get("hostKey"):
            key = asyncssh.import_public_key(wanted["hostKey"])
            options["known_hosts"] = ([key], [], [])
            options["server_host_key_algs"] = [algorithm.decode() for algorithm in key.sig_algorithms]
        if wanted.get("privateKey"):
            options["client_keys"] = [
                asyncssh.import_private_key(wanted["privateKey"], wanted.get("privateKeyPassword"))
            ]
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise PluginError(f"connection: the key cannot be used: {error}") from None
    if wanted.get("password"):
        options["password"] = wanted["password"]
    if wanted.get("agentSocketPath"):
        options["agent_path"] = wanted["agentSocketPath"]
        options.pop("client_keys") if not options["client_keys"] else None
    elif options["client_keys"]:
        options["agent_path"] = None
    else:
        # No key: the user's agent may have one, as with the official plug-in; never the user's key files.
        options["client_keys"] = ()
    return options


async def _run(connection: asyncssh.SSHClientConnection, run: Run) -> Output:
    import asyncssh
    from asyncssh.constants import EXTENDED_DATA_STDERR
    from asyncssh.packet import String

    capture = Capture(run)
    ended = asyncio.get_running_loop().create_future()
    asked, previous = environment(run), dict(run.previous)
    refused: list[str] = []

    class Session(asyncssh.SSHClientSession[bytes]):
        """Takes the output in the order it comes."""

        reason: str | None = "wait: remote command exited without exit status or exit signal"

        def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
            # asyncssh sends variables without asking whether the server took them; a command must not run without.
            ask = chan._make_request  # pyright: ignore[reportPrivateUsage]

            async def with_environment(request: bytes, *args: bytes) -> bool | None:
                if request == b"exec":
                    for name, value in {**previous, **asked}.items():
                        if not await ask(b"env", String(name), String(value)):
                            refused.append(name)
                    if any(name in asked for name in refused):
                        return False
                return await ask(request, *args)

            chan._make_request = with_environment  # pyright: ignore[reportPrivateUsage]

        def data_received(self, data: bytes, datatype: int | None) -> None:
            capture.feed("stderr" if datatype == EXTENDED_DATA_STDERR else "stdout", data)

        def exit_status_received(self, status: int) -> None:
            self.reason = f"Process exited with status {status}" if status else None

        def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
            self.reason = f"Process exited with signal {signal}"

        def connection_lost(self, exc: Exception | None) -> None:
            if not ended.done():
                ended.set_result(f"connection lost: {exc}" if exc else self.reason)

    try:
        channel, _ = await connection.create_session(Session, run.command, encoding=None)
        for name in refused:
            await run.warn(_refusal(name))
        if run.inputs.get("stdin"):
            channel.write(run.inputs["stdin"].encode())
        channel.write_eof()
        reason: str | None = await ended
    except asyncssh.Error as error:
        capture.abandon()
        for name in refused:
            if name in asked:
                raise PluginError(f"could not set environment variable {name}. {_refusal(name)}") from None
        raise capture.failure(str(error)) from None
    except BaseException:
        capture.abandon()
        raise
    await capture.finish()
    if reason is not None:
        raise capture.failure(reason)
    return capture.output()


def _refusal(name: str) -> str:
    return (
        f"Unable to set '{name}'. This only works if your SSH server is configured to accept these variables via "
        "AcceptEnv. Alternatively, if a Bash-like shell runs the command on the remote host, you could prefix the "
        "command itself with the variables in the form 'VAR=value command'"
    )
