"""A machine's SSH server: its host key, its users' keys, commands rooted in its directory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import asyncssh

from lab.machines.simulated import root as roots

_HOST_KEY = "etc/ssh/ssh_host_ed25519_key"
_CHUNK = 1 << 15


class _Server(asyncssh.SSHServer):
    """Public keys only."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        home = self._root / ("var/roothome" if username == "root" else f"var/home/{username}")
        if "/" in username or not home.is_dir():
            return False
        files = [home / ".ssh/authorized_keys", *sorted((home / ".ssh/authorized_keys.d").glob("*"))]
        text = "".join(path.read_text() + "\n" for path in files if path.is_file())
        return bool(text.strip()) and asyncssh.import_authorized_keys(text).validate(key, username, "", "") is not None


def host_key(root: Path) -> asyncssh.SSHKey:
    """The key Ignition wrote, or one made at the first start, kept like sshd-keygen does."""
    path = root / _HOST_KEY
    if not path.exists():
        key = asyncssh.generate_private_key("ssh-ed25519")
        path.write_bytes(key.export_private_key())
        path.chmod(0o600)
        path.with_suffix(".pub").write_bytes(key.export_public_key())
    return asyncssh.read_private_key(path)


async def serve(root: Path, hostname: str, address: str, port: int, extra: dict[str, str]) -> Any:
    """Listen on the machine's address; the result has `close()` and `wait_closed()`."""

    async def session(process: asyncssh.SSHServerProcess[bytes]) -> None:
        user = str(process.get_extra_info("username"))
        home = "/root" if user == "root" else f"/home/{user}"
        argv = ["/bin/sh", "-c", process.command] if process.command else ["/bin/sh"]
        await _execute(process, roots.command(root, hostname, argv, directory=home), {
            **extra, "HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/sh"
        })  # fmt: skip

    return await asyncssh.create_server(
        lambda: _Server(root),
        address,
        port,
        server_host_keys=[host_key(root)],
        process_factory=session,
        sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=os.fsencode(root)),
        encoding=None,
        reuse_address=True,
    )


async def _execute(process: asyncssh.SSHServerProcess[bytes], argv: list[str], variables: dict[str, str]) -> None:
    """Run a program with the session's streams; ends with the program, or the program with the session."""
    child = await asyncio.create_subprocess_exec(
        "setpriv", "--pdeathsig", "KILL", *argv,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=roots.environment(variables), start_new_session=True,
    )  # fmt: skip
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
