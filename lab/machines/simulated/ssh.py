"""A machine's SSH server: its host key, its users' keys, commands rooted in its directory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import asyncssh

from lab.machines.simulated.root import System

_HOST_KEYS = {"ssh_host_ecdsa_key": "ecdsa-sha2-nistp256", "ssh_host_ed25519_key": "ssh-ed25519"}
"""Those that sshd-keygen makes on CoreOS, without RSA, which takes long."""
_REFUSED_BY_FIPS = b"ssh-ed25519"
_CHUNK = 1 << 15


class _Server(asyncssh.SSHServer):
    """Public keys only."""

    def __init__(self, root: Path, connections: set[asyncssh.SSHServerConnection]) -> None:
        self._root = root
        self._connections = connections
        self._mine: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._mine = conn
        self._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._mine is not None:
            self._connections.discard(self._mine)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        home = self._root / ("var/roothome" if username == "root" else f"var/home/{username}")
        if "/" in username or not home.is_dir():
            return False
        files = [home / ".ssh/authorized_keys", *sorted((home / ".ssh/authorized_keys.d").glob("*"))]
        text = "".join(path.read_text() + "\n" for path in files if path.is_file())
        if in_fips_mode(self._root) and key.algorithm == _REFUSED_BY_FIPS:
            return False
        return bool(text.strip()) and asyncssh.import_authorized_keys(text).validate(key, username, "", "") is not None


def in_fips_mode(root: Path) -> bool:
    """Whether its kernel was started in FIPS mode: OpenSSH takes no ed25519 keys then (crypto-policies, FIPS)."""
    cmdline = root / "proc/cmdline"
    return cmdline.is_file() and "fips=1" in cmdline.read_text().split()


def host_keys(root: Path) -> list[asyncssh.SSHKey]:
    """The keys Ignition wrote, and those made at the first start, kept like sshd-keygen does."""
    keys: list[asyncssh.SSHKey] = []
    for name, algorithm in _HOST_KEYS.items():
        path = root / "etc/ssh" / name
        if not path.exists():
            key = asyncssh.generate_private_key(algorithm)
            path.write_bytes(key.export_private_key())
            path.chmod(0o600)
            path.with_suffix(".pub").write_bytes(key.export_public_key())
        keys.append(asyncssh.read_private_key(path))
    fips = in_fips_mode(root)
    return [key for key in keys if not (fips and key.algorithm == _REFUSED_BY_FIPS)]


class Listener:
    """A machine's SSH server, and who is connected to it."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._acceptor: Any = None

    async def open(self, addresses: Sequence[str], port: int) -> None:
        """Listen on the machine's addresses; raises OSError."""
        root = self._system.root
        self._acceptor = await asyncssh.create_server(
            lambda: _Server(root, self._connections),
            cast("Any", addresses),  # asyncio takes several, and asyncssh hands them on
            port,
            server_host_keys=host_keys(root),
            process_factory=self._session,
            sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=os.fsencode(root)),
            encoding=None,
            reuse_address=True,
        )

    def close(self) -> None:
        """Stop listening, and be gone for those who are connected: as a machine does that goes down."""
        if self._acceptor is not None:  # the power may have gone while it was being opened
            self._acceptor.close()
        for connection in list(self._connections):
            connection.abort()

    async def _session(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        user = str(process.get_extra_info("username"))
        home = "/root" if user == "root" else f"/home/{user}"
        argv = ["/bin/sh", "-c", process.command] if process.command else ["/bin/sh"]
        variables = {"HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/sh"}
        pipe = asyncio.subprocess.PIPE
        await _execute(process, await self._system.start(argv, variables, directory=home, stdin=pipe, stderr=pipe))


async def _execute(process: asyncssh.SSHServerProcess[bytes], child: asyncio.subprocess.Process) -> None:
    """Join a program with the session's streams; it ends with the program, or the program with the session."""
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    feeding = asyncio.create_task(_pump(process.stdin, child.stdin, end=True))
    try:
        await asyncio.gather(_pump(child.stdout, process.stdout), _pump(child.stderr, process.stderr))
        code = await child.wait()
        if code < 0:
            process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
        else:
            process.exit(code)
    finally:
        feeding.cancel()
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()


async def _pump(source: Any, target: Any, *, end: bool = False) -> None:
    """Copy until the source ends; a target that is gone ends it as well."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, asyncssh.BreakReceived):
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
        if end:
            target.write_eof()
