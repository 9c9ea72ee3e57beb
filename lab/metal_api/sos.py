"""Serial over SSH: `ssh <device id>@sos.<facility>.platformequinix.com` replays a console and follows it."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncssh

from lab.machines.base import MachineBackend
from lab.metal_api.devices import Device
from lab.metal_api.exceptions import NotFound
from lab.metal_api.ssh_keys import device_keys, keys_of
from lab.metal_api.state import Account

_POLL = 0.25


class _Server(asyncssh.SSHServer):
    """Lets in who has a key of the device or its project, under the device's id."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._allowed: asyncssh.SSHAuthorizedKeys | None = None

    def begin_auth(self, username: str) -> bool:
        try:
            device = self._account.table(Device).find(username)
        except NotFound:
            return True
        keys = [key.key for key in keys_of(self._account, device.project_id)]
        self._allowed = asyncssh.import_authorized_keys("\n".join([*keys, *device_keys(self._account, device)]) + "\n")
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return self._allowed is not None and self._allowed.validate(key, username, "", "") is not None


async def serve(account: Account, machines: MachineBackend, address: str, host_key: str, *, port: int = 22) -> Any:
    """Start the server; the result has `close()`. `host_key` is an OpenSSH private key."""

    async def session(process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Console out, nothing in. `ssh ... true`-like commands are ignored: there is no shell on a serial line."""
        identity = str(process.get_extra_info("username"))
        sent = 0
        try:
            while identity in account.table(Device):
                printed = machines.console(identity)
                process.stdout.write(printed[sent:])
                sent = max(sent, len(printed))
                await process.stdout.drain()
                await asyncio.sleep(_POLL)
        except (BrokenPipeError, ConnectionError, asyncssh.Error):
            return  # the client left: the usual end of a console session
        process.exit(0)

    return await asyncssh.create_server(
        lambda: _Server(account),
        address,
        port,
        server_host_keys=[asyncssh.import_private_key(host_key)],
        process_factory=session,
        encoding=None,
        reuse_address=True,
    )
