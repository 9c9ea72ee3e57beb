"""What programs of a simulated machine do to its hardware: disks, power, another kernel.

The few programs that would talk to a kernel or to systemd are the script programs/client.sh under other names, first on
PATH. It leaves its arguments in a directory below /run/simulated/calls, rings /run/simulated/bell, and is answered. All
other programs are the host's own, on the machine's files.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from lab.machines.simulated import root as roots
from lab.machines.simulated.programs import Answer, Call, Host, Refused, block, installer, power

_log = logging.getLogger(__name__)
_CLIENT = Path(__file__).with_name("programs") / "client.sh"
_PATIENCE, _PAUSE = 6000, 0.005
"""How often, and how many seconds apart, it is tried to give an answer."""
_PROGRAMS: dict[str, Callable[[Call, Host], Awaitable[Answer]]] = {
    "coreos-installer": installer.coreos_installer,
    "dd": block.dd,
    "kexec": power.kexec,
    "lsblk": block.lsblk,
    "mount": block.mount,
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
        self._directory = host.root / "run/simulated"
        self._bell = -1
        self._rung = b""
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Put the programs in place and listen."""
        (self._directory / "calls").mkdir(parents=True, exist_ok=True)
        programs = self._host.root / "var/usrlocal/sbin"
        programs.mkdir(exist_ok=True)
        for name in _PROGRAMS:
            (programs / name).write_bytes(_CLIENT.read_bytes())
            (programs / name).chmod(0o755)
        bell = self._directory / "bell"
        bell.unlink(missing_ok=True)
        os.mkfifo(bell, 0o600)
        self._bell = os.open(bell, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._bell, self._ring)

    async def close(self) -> None:
        """Answer nobody any more; what was being done stays half done."""
        asyncio.get_running_loop().remove_reader(self._bell)
        os.close(self._bell)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ring(self) -> None:
        self._rung += os.read(self._bell, 1 << 12)
        *names, self._rung = self._rung.split(b"\n")
        for name in names:
            task = asyncio.create_task(self._answer(self._directory / "calls" / name.decode()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, directory: Path) -> None:
        name, where, *arguments = (directory / "request").read_bytes().decode().split("\0")[:-1]
        call = Call(name=name, directory=where, arguments=tuple(arguments))
        try:
            answer = await _PROGRAMS[name](call, self._host)
        except Refused as refused:
            answer = Answer(status=1, stderr=f"{name}: {refused}\n")
        except Exception as error:
            _log.exception("%s: the simulated %s broke", self._host.spec.hostname, name)
            answer = Answer(status=70, stderr=f"{name}: the simulation broke: {error!r}\n")
        roots.populate(self._host.root, self._host.disks)
        # Whoever asked may be gone.
        with contextlib.suppress(OSError):
            (directory / "stdout").write_text(answer.stdout)
            (directory / "stderr").write_text(answer.stderr)
            (directory / "then").write_text(answer.then)
            descriptor = await _listened_to(directory / "answer")
            os.write(descriptor, f"{answer.status}\n".encode())
            os.close(descriptor)


async def _listened_to(pipe: Path) -> int:
    """A pipe for writing, once somebody reads from it; raises OSError when nobody does for a while."""
    for _ in range(_PATIENCE):
        with contextlib.suppress(OSError):
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        await asyncio.sleep(_PAUSE)
    raise BrokenPipeError(str(pipe))
