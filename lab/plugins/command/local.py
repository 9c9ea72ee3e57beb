"""Runs a command on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

from lab.plugins.base import PluginError
from lab.plugins.command.outcome import Capture, Output, Run

SHELL = ("/bin/sh", "-c")

KILL_AFTER_SECONDS = 2.0
"""How long a cancelled command may take to end by itself."""


async def run_local(run: Run) -> Output:
    """Runs it in a process group of its own, so that a cancelled command takes its children along."""
    directory = run.inputs.get("dir")
    if directory is not None and not os.path.isdir(directory):  # noqa: PTH112, ASYNC240 - a look, not a read
        raise PluginError(f"the command's dir {directory} does not exist or is not a directory")
    capture = Capture(run)
    stdin = (run.inputs.get("stdin") or "").encode()
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *SHELL,
            run.command,
            cwd=directory,
            env={**os.environ, **(run.inputs.get("environment") or {})},
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        # Cancelled while it starts, asyncio would kill the first process only and wait for all that hold its pipes.
        process = await asyncio.shield(starting)
    except OSError as error:
        capture.abandon()
        raise capture.failure(f"cannot start {SHELL[0]}: {error.strerror}") from None
    except BaseException:
        capture.abandon()
        with contextlib.suppress(OSError):
            await _stop(await starting)
        raise
    try:
        await asyncio.gather(
            _feed(process, stdin), _read(process, "stdout", capture), _read(process, "stderr", capture)
        )
        status = await process.wait()
    except BaseException:
        capture.abandon()
        await _stop(process)
        raise
    await capture.finish()
    if status:
        how = f"exit status {status}" if status > 0 else f"signal: {signal.strsignal(-status) or -status}"
        raise capture.failure(how.lower())
    return capture.output()


async def _feed(process: asyncio.subprocess.Process, stdin: bytes) -> None:
    if process.stdin is None:
        return
    # A command that does not read its input is not wrong for it.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(stdin)
        await process.stdin.drain()
        process.stdin.close()
        await process.stdin.wait_closed()


async def _read(process: asyncio.subprocess.Process, name: str, capture: Capture) -> None:
    stream = process.stdout if name == "stdout" else process.stderr
    assert stream is not None
    while data := await stream.read(65536):
        capture.feed(name, data)


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Ends the whole process group, kindly first."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), KILL_AFTER_SECONDS)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
