"""A process of ours, from its start until it does not run any more."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.errors import ServiceFailed

_STOP_SECONDS = 10.0
_LINES_TOLD = 12


class Process:
    """It ends with the thread that starts it, however that ends: a killed test run leaves nothing behind."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self._running = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int | None:
        """Its process id; None when it was stopped."""
        return self._running.pid if self._running is not None else None

    @property
    def runs(self) -> bool:
        """Whether it was started, and has not ended."""
        return self._running is not None and self._running.poll() is None

    def check(self) -> None:
        """Raise ServiceFailed, with the last lines of its log, if it does not run any more."""
        if self._running is None:
            raise ServiceFailed(f"{self.name} was stopped")
        if self._running.poll() is not None:
            raise ServiceFailed(f"{self.name} ended with status {self._running.returncode}:\n{self.last_lines()}")

    def stop(self) -> None:
        """End it, the patient way first; repeating it does nothing."""
        process, self._running = self._running, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def last_lines(self) -> str:
        """The end of its log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-_LINES_TOLD:])


def free_port(address: str) -> int:
    """A free port of one of the lab's addresses."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]
