"""A client that asks the API and the machine config server how they are, ten times a second, and notes how it went.

    python -m tests.end_to_end.prober ADDRESS FILE

Runs until it is ended; FILE gets one JSON line per request: when it began (seconds, monotonic), port, whether it went
well. Every request is a connection of its own, as new clients make them. Certificates are not looked at: this measures
whether somebody answers; who may answer is tested elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from typing import IO

PERIOD = 0.1
LIMIT = 2.0
"""Seconds until a request counts as failed."""
PATHS = {6443: "/readyz", 22623: "/healthz"}


async def ask(address: str, port: int, context: ssl.SSLContext, file: IO[str]) -> None:
    """One request."""
    began = time.monotonic()
    try:
        well = await asyncio.wait_for(_answers(address, port, context), LIMIT)
    except (OSError, EOFError):
        well = False
    file.write(json.dumps({"began": began, "port": port, "well": well}) + "\n")


async def _answers(address: str, port: int, context: ssl.SSLContext) -> bool:
    reader, writer = await asyncio.open_connection(address, port, ssl=context, server_hostname="")
    try:
        writer.write(f"GET {PATHS[port]} HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        return (await reader.readline()).split()[1:2] == [b"200"]
    finally:
        writer.transport.abort()


async def main(address: str, path: str) -> None:
    """Ask on, however long an answer takes."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    tasks: set[asyncio.Task[None]] = set()
    with open(path, "w", buffering=1) as file:  # noqa: PTH123, ASYNC230 - one line at a time, small
        due = time.monotonic()
        while True:
            for port in PATHS:
                task = asyncio.create_task(ask(address, port, context, file))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            due += PERIOD
            await asyncio.sleep(max(due - time.monotonic(), 0))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
