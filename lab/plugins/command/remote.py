"""Runs a command over SSH. asyncssh is imported at the first use: it takes longer than the rest of the plug-in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lab.plugins.base import PluginError
from lab.plugins.command.outcome import Capture, Output, Run
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
    """asyncssh's options: only what the program says counts, no configuration, agent or known hosts of the user."""
    import asyncssh

    try:
        host_key = asyncssh.import_public_key(wanted["hostKey"])
        client_key = asyncssh.import_private_key(wanted["privateKey"])
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise PluginError(f"connection: the key cannot be used: {error}") from None
    return {
        "host": wanted["host"],
        "port": int(wanted.get("port", 22)),
        "username": wanted.get("user", "root"),
        "config": None,
        "known_hosts": ([host_key], [], []),
        "server_host_key_algs": [algorithm.decode() for algorithm in host_key.sig_algorithms],
        "client_keys": [client_key],
        "agent_path": None,
        "gss_host": None,
    }


async def _run(connection: asyncssh.SSHClientConnection, run: Run) -> Output:
    import asyncssh
    from asyncssh.constants import EXTENDED_DATA_STDERR

    capture = Capture(run)
    ended = asyncio.get_running_loop().create_future()

    class Session(asyncssh.SSHClientSession[bytes]):
        """Takes the output in the order it comes."""

        reason: str | None = "wait: remote command exited without exit status or exit signal"

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
        if run.inputs.get("stdin"):
            channel.write(run.inputs["stdin"].encode())
        channel.write_eof()
        reason: str | None = await ended
    except asyncssh.Error as error:
        capture.abandon()
        raise capture.failure(str(error)) from None
    except BaseException:
        capture.abandon()
        raise
    await capture.finish()
    if reason is not None:
        raise capture.failure(reason)
    return capture.output()
