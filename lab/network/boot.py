"""The boot server's process: files by http and https, uploads by SFTP.

Run by the supervisor as `python -m lab.network.boot --state DIR`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import ssl
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from lab.layout import Layout
from lab.network import files, plan, upload


class _Server(uvicorn.Server):
    """A server among several in one process: signals are not its business."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve(layout: Layout) -> None:
    """Serve until cancelled."""
    application = files.application(layout.boot)
    certificate = layout.tls / plan.BOOT_NAME

    def config(port: int, *, tls: bool) -> uvicorn.Config:
        return uvicorn.Config(
            application,
            host=plan.BOOT,
            port=port,
            ssl_certfile=f"{certificate}.crt" if tls else None,
            ssl_keyfile=f"{certificate}.key" if tls else None,
            ssl_version=ssl.PROTOCOL_TLS_SERVER,
            log_config=None,
            access_log=False,
            lifespan="off",
        )

    async with await upload.serve(layout, plan.BOOT, 22):
        servers = (_Server(config(80, tls=False)), _Server(config(443, tls=True)))
        await asyncio.gather(*(server.serve() for server in servers))


def main() -> None:
    """Serve until the supervisor ends us: nothing is kept in memory, so there is nothing to end gracefully."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", required=True)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    asyncio.run(serve(Layout.of(arguments.state)))


if __name__ == "__main__":
    main()
