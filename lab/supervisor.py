"""The lab's supervisor: process 1 of the lab's pid namespace. When it ends, the kernel ends everything in the lab.

Started by lab.control as `unshare ... python -m lab.supervisor --state DIR --machines M --services a,b`. It sets the
network up, starts the services, probes them until they answer, and tells status.json what it sees. A service that
dies is not started again: in a rehearsal that is a fault to be seen, not to be hidden.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from lab.errors import LabError
from lab.layout import Layout, write_private
from lab.network import bird, link, resolver
from lab.services import Service, environment, select
from lab.supervision import Held, hold

_ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_WAKING = {signal.SIGCHLD, signal.SIGUSR1, *_ENDING}
"""SIGUSR1: other services may be wanted."""
_PROBE_EVERY = 0.05


def say(message: str) -> None:
    """A line for the supervisor's log."""
    print(time.strftime("%H:%M:%S"), message, file=sys.stderr, flush=True)


@dataclass
class _Running:
    """A service and what became of it."""

    service: Service
    process: subprocess.Popen[bytes]
    started: float
    state: str = "starting"
    detail: str = ""
    seconds: float = 0.0


def _unblock() -> None:
    """Undo in a service what it would inherit: the signals that we wait for are blocked here."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAKING)


class Services:
    """The services, and the loop that watches them. Everything happens in one thread."""

    def __init__(self, layout: Layout, machines: str, wanted: Callable[[], list[Service]]) -> None:
        """`wanted` is asked which services there are to be: at the start, and at SIGUSR1."""
        self._layout = layout
        self._machines = machines
        self._wanted = wanted
        self._running: dict[int, _Running] = {}

    def run(self) -> None:
        """Start the services, watch them until told to end, end them."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _WAKING)
        self._adjust()
        self._tell("starting")
        while True:
            probing = any(each.state == "starting" for each in self._running.values())
            woken = signal.sigtimedwait(_WAKING, _PROBE_EVERY if probing else 3600)
            if woken is not None and woken.si_signo in _ENDING:
                break
            if woken is not None and woken.si_signo == signal.SIGUSR1:
                self._adjust()
                self._tell()
            if self._reap() | self._probe():
                self._tell()
        self._end()

    def _adjust(self) -> None:
        """Start what is wanted and does not run, end what is not wanted any more."""
        wanted = {service.name: service for service in self._wanted()}
        for pid, each in list(self._running.items()):
            if wanted.pop(each.service.name, None) is None:
                self._stop(each)
                del self._running[pid]
        for service in wanted.values():
            self._start(service)

    def _start(self, service: Service) -> None:
        if service.ready is not None:
            service.ready.unlink(missing_ok=True)
        with self._layout.log(service.name).open("ab") as log:
            process = subprocess.Popen(
                service.argv,
                cwd=self._layout.state / service.directory,
                env=environment(self._layout),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_unblock,  # noqa: PLW1509 - there is one thread
            )
        self._running[process.pid] = _Running(service, process, time.monotonic())
        say(f"{service.name}: started, process {process.pid}")

    def _reap(self) -> bool:
        """Bury the dead, ours and those left to us as process 1; says whether a service was among them."""
        changed = False
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                dead = self._running.get(pid)
                if dead is not None:
                    dead.process.returncode = os.waitstatus_to_exitcode(status)
                    dead.state, dead.detail = "dead", f"it ended with status {dead.process.returncode}"
                    say(f"{dead.service.name}: {dead.detail}")
                    changed = True
        return changed

    def _probe(self) -> bool:
        """Ask those that do not answer yet; says whether anything changed."""
        changed = False
        for each in self._running.values():
            if each.state != "starting":
                continue
            each.seconds = time.monotonic() - each.started
            try:
                each.service.probe(self._layout)
            except (OSError, LabError) as error:
                if each.seconds < each.service.patience:
                    continue
                each.state, each.detail = "silent", f"it did not answer within {each.service.patience:.0f} s: {error}"
            else:
                each.state = "ready"
            say(f"{each.service.name}: {each.detail or f'answers after {each.seconds:.2f} s'}")
            changed = True
        return changed

    def _tell(self, state: str | None = None) -> None:
        states = {each.state for each in self._running.values()}
        if state is None:
            state = "failed" if states & {"dead", "silent"} else "starting" if "starting" in states else "ready"
        services = {
            each.service.name: {"state": each.state, "detail": each.detail, "seconds": round(each.seconds, 2)}
            for each in self._running.values()
        }
        document = {"state": state, "machines": self._machines, "services": services}
        write_private(self._layout.status, json.dumps(document, indent=2) + "\n")

    def _end(self) -> None:
        """Let services end in the reverse order of their start, those that use others first."""
        self._tell("stopping")
        for each in reversed(self._running.values()):
            self._stop(each)
        say("stopped")

    def _stop(self, each: _Running) -> None:
        if each.state == "dead":
            return
        say(f"{each.service.name}: stopping")
        each.process.terminate()
        deadline = time.monotonic() + each.service.grace
        while each.state != "dead" and time.monotonic() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, 0.1)
            self._reap()
        if each.state != "dead":
            say(f"{each.service.name}: did not stop within {each.service.grace:.0f} s, killed")
            each.process.kill()


def _prepare_router(layout: Layout) -> None:
    """Make the router's directory ready, or say what the lab goes on without."""
    if bird.program() is None:
        say("there is no BGP router: BIRD is not installed (package bird2)")
        return
    bird.prepare(layout)
    if not bird.signatures_work():
        say("BGP sessions have no passwords: this kernel has no TCP MD5 signatures (CONFIG_TCP_MD5SIG)")


def main() -> int:
    """Be process 1 of the lab."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", required=True)
    parser.add_argument("--machines", required=True)
    parser.add_argument("--services", required=True)
    arguments = parser.parse_args()
    layout = Layout.of(arguments.state)
    try:
        lock = hold(layout.lock)
    except Held:
        say("another supervisor has this state directory")
        return 1
    try:
        link.set_up(disconnected="witness" in arguments.services.split(","))
        resolver.set_up(layout)
        if "metal-api" in arguments.services.split(","):
            _prepare_router(layout)
        names = arguments.services.split(",")
        select(layout, arguments.machines, names)  # what is wrong with them is told before anything starts
    except (LabError, OSError) as error:
        say(f"cannot set the sandbox up: {error}")
        return 1
    say(f"the lab runs with {arguments.machines} machines")
    Services(layout, arguments.machines, lambda: select(layout, arguments.machines, names)).run()
    os.close(lock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
