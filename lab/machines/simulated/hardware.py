"""What programs of a simulated machine do to its hardware: disks, power, another kernel.

The few programs that would talk to a kernel or to systemd are lab-openshift under other names, first on PATH. It sends
its name and arguments to the socket /run/simulated/hardware, and does what it is answered. All other programs are the
host's own, on the machine's files.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from lab.machines.simulated import root as roots
from lab.machines.simulated.programs import Answer, Call, Host, Refused, block, installer, network, power

_log = logging.getLogger(__name__)
_SOCKET = "hardware"
_PROGRAMS: dict[str, Callable[[Call, Host], Awaitable[Answer]]] = {
    "chronyc": network.chronyc,
    "coreos-installer": installer.coreos_installer,
    "date": network.date,
    "dd": block.dd,
    "ip": network.ip,
    "kexec": power.kexec,
    "lsblk": block.lsblk,
    "mount": block.mount,
    "ping": network.ping,
    "poweroff": power.reboot_or_poweroff,
    "reboot": power.reboot_or_poweroff,
    "systemctl": power.systemctl,
    "udevadm": block.udevadm,
    "wipefs": block.wipefs,
}


class Hardware:
    """Answers the programs of one machine, as long as it is up."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._server: asyncio.Server | None = None
        self._calls: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Put the programs in place and listen."""
        programs = self._host.root / "var/usrlocal/sbin"
        programs.mkdir(exist_ok=True)
        for name in _PROGRAMS:
            (programs / name).unlink(missing_ok=True)
            roots.install(self._host.around.lab_openshift, programs / name)
        directory = self._host.root / "run/simulated"
        directory.mkdir(exist_ok=True)
        (directory / _SOCKET).unlink(missing_ok=True)
        descriptor = os.open(directory, os.O_PATH)
        try:
            # The path itself may be longer than a socket's may be (unix(7)).
            self._server = await asyncio.start_unix_server(self._accept, f"/proc/self/fd/{descriptor}/{_SOCKET}")
        finally:
            os.close(descriptor)

    async def close(self) -> None:
        """Stop answering; running operations stay incomplete."""
        if self._server is not None:
            self._server.close()
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call = asyncio.current_task()
        assert call is not None, "asyncio makes a task of every connection"
        self._calls.add(call)
        try:
            answer = await self._answer(Call.of(await reader.read()))
            with contextlib.suppress(ConnectionError):  # whoever asked may be gone
                writer.write(json.dumps(asdict(answer)).encode())
                await writer.drain()
        finally:
            writer.close()
            self._calls.discard(call)

    async def _answer(self, call: Call) -> Answer:
        try:
            answer = await _PROGRAMS[call.name](call, self._host)
        except Refused as refused:
            answer = Answer(status=1, stderr=f"{call.name}: {refused}\n")
        except Exception as error:
            _log.exception("%s: the simulated %s broke", self._host.spec.hostname, call.name)
            answer = Answer(status=70, stderr=f"{call.name}: the simulation broke: {error!r}\n")
        roots.populate(self._host.root, self._host.disks)
        return answer
