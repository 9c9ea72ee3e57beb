"""The boot server's process: files by http and https, uploads by SFTP.

Run by the supervisor as `python -m lab.network.boot --state DIR`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import ssl
from typing import Any

import asyncssh
import uvicorn

from lab.layout import Layout
from lab.metal_api.wire import Server
from lab.network import files, plan, upload_keys


class _Login(asyncssh.SSHServer):
    """Only the user `upload`, only with the lab's key. Without a session factory there is no shell either."""

    def __init__(self, authorized: asyncssh.SSHKey) -> None:
        self._authorized = authorized

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == upload_keys.USER and key.public_data == self._authorized.public_data


async def _accept_uploads(layout: Layout) -> asyncssh.SSHAcceptor:
    """SFTP for one user with one key, who sees the boot server's tree and nothing else."""
    private, _ = upload_keys.ensure(layout, upload_keys.HOST)
    _, authorized = upload_keys.ensure(layout, upload_keys.CLIENT)
    key = asyncssh.import_public_key(authorized)

    def sftp(channel: asyncssh.SSHServerChannel[Any]) -> asyncssh.SFTPServer:
        return asyncssh.SFTPServer(channel, chroot=str(layout.boot).encode())

    return await asyncssh.listen(
        plan.BOOT,
        22,
        server_factory=lambda: _Login(key),
        server_host_keys=[asyncssh.import_private_key(private)],
        sftp_factory=sftp,
        allow_scp=True,
        agent_forwarding=False,
    )


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

    async with await _accept_uploads(layout):
        servers = (Server(config(80, tls=False)), Server(config(443, tls=True)))
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
