"""The upload server: SFTP for one user with one key, who sees the boot server's tree and nothing else."""

from __future__ import annotations

from typing import Any

import asyncssh

from lab.layout import Layout
from lab.network import upload_keys


class _Login(asyncssh.SSHServer):
    """Only the user `upload`, only with the lab's key. Without a session factory there is no shell either."""

    def __init__(self, authorized: asyncssh.SSHKey) -> None:
        self._authorized = authorized

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == upload_keys.USER and key.public_data == self._authorized.public_data


async def serve(layout: Layout, address: str, port: int) -> asyncssh.SSHAcceptor:
    """Listen on `address`; uploads end up under the boot root."""
    private, _ = upload_keys.ensure(layout, upload_keys.HOST)
    _, authorized = upload_keys.ensure(layout, upload_keys.CLIENT)
    key = asyncssh.import_public_key(authorized)
    root = str(layout.boot).encode()

    def sftp(channel: asyncssh.SSHServerChannel[Any]) -> asyncssh.SFTPServer:
        return asyncssh.SFTPServer(channel, chroot=root)

    return await asyncssh.listen(
        address,
        port,
        server_factory=lambda: _Login(key),
        server_host_keys=[asyncssh.import_private_key(private)],
        sftp_factory=sftp,
        allow_scp=True,
        agent_forwarding=False,
    )
