"""The enabled units of a machine as processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from lab.machines.simulated import root as roots
from lab.machines.simulated import unitfile
from lab.machines.simulated.root import System
from lab.machines.simulated.unitfile import UnitFile

_STOP_SECONDS = 2.0
_RESTART_ON_FAILURE = ("always", "on-failure", "on-abnormal", "on-abort")


class Units:
    """Starts what is enabled, in order, restarts what wants it, stops everything."""

    def __init__(self, system: System, log: Callable[[str], None]) -> None:
        self._system = system
        self._root = system.root
        self._log = log
        self._tasks: list[asyncio.Task[None]] = []
        self._processes: set[asyncio.subprocess.Process] = set()
        self._settled: dict[str, asyncio.Event] = {}
        self.activating: set[str] = set()
        """The services of type oneshot that run."""

    def start(self) -> None:
        """Start all; returns at once."""
        wanted = unitfile.wanted(self._root)
        present = {name: unit for name, unit in wanted.items() if unit is not None}
        self._settled = {name: asyncio.Event() for name in present}
        before = unitfile.order(present)
        for name, unit in present.items():
            if name.endswith((".service", ".target")):
                task = self._run(unit, before[name])
                self._tasks.append(asyncio.create_task(task, name=f"{self._system.hostname} {name}"))
            else:
                self._settled[name].set()
                self._log(f"systemd[1]: {name}: not run by simulated machines")

    async def stop(self, *, patient: bool = True) -> None:
        """Stop restarting, then end every process, the patient way first unless the power is gone."""
        for task in self._tasks:
            task.cancel()
        processes = list(self._processes)
        for process in processes:
            _signal(process, signal.SIGTERM if patient else signal.SIGKILL)
        if processes:
            waiting = [asyncio.create_task(process.wait()) for process in processes]
            _, late = await asyncio.wait(waiting, timeout=_STOP_SECONDS)
            for process in processes:
                _signal(process, signal.SIGKILL)
            if late:
                await asyncio.wait(late)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _run(self, unit: UnitFile, before: set[str]) -> None:
        """The life of a unit: wait for what comes before; a service runs, and runs again if it asks for it."""
        for name in before:
            await self._settled[name].wait()
        try:
            if unit.name.endswith(".service") and self._conditions_hold(unit):
                await self._service(unit)
        except (OSError, ValueError) as error:
            self._log(f"systemd[1]: {unit.name}: {error}")
        finally:
            self._settled[unit.name].set()

    def _conditions_hold(self, unit: UnitFile) -> bool:
        for value in unit.all("Unit", "ConditionPathExists"):
            negated, path = value.startswith("!"), value.lstrip("!|")
            if (self._root / path.lstrip("/")).exists() == negated:
                self._log(f"systemd[1]: {unit.name} was skipped because of ConditionPathExists={value}")
                return False
        return True

    async def _service(self, unit: UnitFile) -> None:
        oneshot = unit.last("Service", "Type", "simple") == "oneshot"
        restart = unit.last("Service", "Restart", "no")
        pause = _seconds(unit.last("Service", "RestartSec", "100ms"))
        variables = {**self._system.variables, **unitfile.environment(unit, self._root)}
        while True:
            self._log(f"systemd[1]: Starting {unit.name}...")
            if oneshot:
                self.activating.add(unit.name)
            try:
                code = await self._once(unit, variables, oneshot)
            finally:
                self.activating.discard(unit.name)
            if code == 0:
                self._log(f"systemd[1]: {unit.name}: Deactivated successfully.")
            else:
                self._log(f"systemd[1]: {unit.name}: Failed with result 'exit-code' (status={code}).")
            again = restart == "always" or (code != 0 and restart in _RESTART_ON_FAILURE)
            again = again or (code == 0 and restart == "on-success")
            if code is None or not again or (oneshot and code == 0):
                return
            await asyncio.sleep(pause)

    async def _once(self, unit: UnitFile, variables: dict[str, str], oneshot: bool) -> int | None:
        """Run the Exec lines in turn; None when a program is not there, which no restart would change."""
        for key in ("ExecStartPre", "ExecStart", "ExecStartPost" if oneshot else ""):
            lines = unit.all("Service", key)
            for line in lines:
                argv, ignored = unitfile.arguments(line, variables)
                if not roots.has_executable(self._root, argv[0]):
                    self._log(f"systemd[1]: {unit.name}: {argv[0]}: not available on simulated machines")
                    if ignored:
                        continue
                    return None
                code = await self._execute(unit, argv, variables, settle=key == "ExecStart" and not oneshot)
                if code != 0 and not ignored:
                    return code
        return 0

    async def _execute(self, unit: UnitFile, argv: list[str], variables: dict[str, str], *, settle: bool) -> int:
        directory = unit.last("Service", "WorkingDirectory", "/").lstrip("-").replace("~", "/root")
        process = await self._system.start(
            argv, variables, directory=directory, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.STDOUT
        )
        self._processes.add(process)
        if settle:
            self._settled[unit.name].set()
        try:
            assert process.stdout is not None
            program = os.path.basename(argv[0])  # noqa: PTH119 - a path of the machine, not ours
            while text := await process.stdout.readline():
                self._log(f"{program}[{process.pid}]: {text.decode(errors='replace').rstrip()}")
            return await process.wait()
        finally:
            if process.returncode is not None:
                self._processes.discard(process)


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send a signal to the whole session of a process, which may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _seconds(text: str) -> float:
    """A time span of systemd: `5`, `5s`, `100ms`, `1min 30s`."""
    total = 0.0
    scale = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}
    for word in text.split():
        number = word.rstrip("abcdefghijklmnopqrstuvwxyz")
        total += float(number) * scale[word[len(number) :]]
    return total
