"""virsh, libvirt's command line: it comes with libvirt, and needs no compiled bindings."""

from __future__ import annotations

import asyncio
import os

from metal_ipi.provider.errors import InvalidInputs, RemoteError

PROGRAM = "virsh"
_NOT_CONNECTED = "failed to connect to the hypervisor"


class Virsh:
    """virsh on the host where the provider runs, connected to one libvirt."""

    def __init__(self, uri: str, *, timeout: float = 120) -> None:
        """`timeout` is how long one command may take, in seconds."""
        self.uri = uri
        self._timeout = timeout

    async def run(self, *arguments: str, stdin: str = "") -> str:
        """Run one command; returns its output. Raises InvalidInputs without virsh, RemoteError with libvirt's
        message."""
        try:
            process = await asyncio.create_subprocess_exec(
                *(PROGRAM, "--quiet", "--connect", self.uri, *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            raise InvalidInputs(
                f"the bootstrap machine is a virtual machine, but {PROGRAM} cannot be run on the machine where `up` "
                f"runs ({error.strerror or error}): install it there (Debian: libvirt-clients, Fedora: "
                "libvirt-client), or set platform.bootstrap.type to lend"
            ) from None
        try:
            out, err = await asyncio.wait_for(process.communicate(stdin.encode()), self._timeout)
        except TimeoutError:
            raise RemoteError(
                f"libvirt at {self.uri} does not answer `{PROGRAM} {arguments[0]}` within {self._timeout:g} s; check "
                "libvirt there, and run the same command again",
                passing=True,
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._failed(arguments[0], err.decode(errors="replace"))
        return out.decode(errors="replace")

    def _failed(self, command: str, output: str) -> RemoteError:
        lines = [line.removeprefix("error: ").strip() for line in output.splitlines()]
        words = "; ".join(filter(None, lines)) or "it gives no reason"
        if _NOT_CONNECTED in output:
            return RemoteError(
                f"libvirt at {self.uri} cannot be used: {words}. Start libvirtd (or virtqemud) there, let the user of "
                "`up` use it (group libvirt), or correct platform.bootstrap.uri"
            )
        return RemoteError(f"libvirt at {self.uri}, `{PROGRAM} {command}`: {words}")
