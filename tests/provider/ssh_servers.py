"""SSH servers on loopback: nodes, consoles and an artifact host."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh

from metal_ipi.provider.gates import first_boot


def key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key("ssh-ed25519")


def private(item: asyncssh.SSHKey) -> str:
    return item.export_private_key().decode()


def public(item: asyncssh.SSHKey) -> str:
    return item.export_public_key().decode().strip()


@asynccontextmanager
async def node(
    host_key: asyncssh.SSHKey,
    client_key: asyncssh.SSHKey,
    *,
    address: str = "127.0.0.1",
    port: int = 0,
    console: str = "",
    journal: str = "",
    status: int = 0,
    reads: bool = False,
    heard: list[str] | None = None,
    boot_states: Callable[[], tuple[str, str]] = lambda: ("a-boot", "finished"),
) -> AsyncGenerator[int, None]:
    """A node, or a console host: a shell prints the console, a command the journal, after reading its input.

    `boot_states` answers the id of the node's boot, and how far its first one is.
    """

    async def session(process: asyncssh.SSHServerProcess[str]) -> None:
        if process.command is None:
            process.stdout.write(console)
            await process.stdin.read()
        elif first_boot.QUESTION in process.command:
            process.stdout.write("\n".join(boot_states()) + "\n")
            process.exit(0)
            return
        else:
            if heard is not None:
                heard.append(process.command)
            if reads:
                await process.stdin.read()
            process.stdout.write(journal)
        process.exit(status)

    server = await asyncssh.listen(
        address,
        port,
        server_host_keys=[host_key],
        authorized_client_keys=asyncssh.import_authorized_keys(public(client_key)),
        process_factory=session,
    )
    try:
        yield int(server.get_port())
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def artifact_host(
    folder: Path, host_key: asyncssh.SSHKey, client_key: asyncssh.SSHKey
) -> AsyncGenerator[dict[str, Any], None]:
    """The provider's `artifacts` section for an SFTP server which serves a folder as `/`."""

    class Server(asyncssh.SFTPServer):
        def __init__(self, channel: Any) -> None:
            super().__init__(channel, chroot=str(folder).encode())

    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[host_key],
        authorized_client_keys=asyncssh.import_authorized_keys(public(client_key)),
        sftp_factory=Server,
    )
    try:
        yield {
            "type": "ssh",
            "host": "127.0.0.1",
            "port": server.get_port(),
            "user": "upload",
            "hostKey": public(host_key),
            "privateKey": private(client_key),
            "directory": "/artifacts",
            "baseUrl": "https://boot.facility.test/artifacts/",
            "bootBaseUrl": "http://boot.facility.test/artifacts",
        }
    finally:
        server.close()
        await server.wait_closed()
