"""Many servers through one Ironic and through three conductors of it: time, memory, requests.

The hub, its Ironic and our driver are the real ones; nothing is behind the BMCs, which are on or off some seconds after
they are asked to.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import psutil

from lab.hub import images, programs
from lab.network import plan
from tests.bench import bmc_farm
from tests.bench.measure import BenchError, Line, say, skipped
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project
from tests.end_to_end.provisioned import SERVERS, Ironic, provider_sections
from tests.lab.waiting import processes

_PORT = 8123
_LIMIT = 3600
_CONDUCTORS = (1, 3)
_CONDUCTOR = ("/opt/ironic/bin/ironic", "/etc/ironic/conductor.conf")
"""What its command line has, also where it calls itself a master process."""


def ironic(servers: int, scratch: Path) -> Iterator[Line]:
    """A line for each number of conductors."""
    if isinstance(missing := programs.find(), str):
        yield skipped("ironic", missing)
        return
    for recipe in images.ALL:
        recipe.ensure(say)
    directory = scratch / "ironic"
    directory.mkdir()
    for project in copies(directory, stack="hub"):
        # The settings of a stack that has its servers from Ironic are of the lab's rack; its BMCs are not asked.
        project.lab("up", "--machines", project.machines, "--rack", str(SERVERS))
        for conductors in _CONDUCTORS:
            project.keep(provisioning={"conductors": conductors})
            project.make("up", seconds=900)
            yield _measured(project, Ironic(project, directory), servers, conductors)
        project.make("down", seconds=300)


def _measured(project: Project, ironic: Ironic, servers: int, conductors: int) -> Line:
    config = provider_sections(project, ironic)
    one = next(iter(config["ironic"]["servers"].values()))
    shared = {key: one[key] for key in ("driver", "username", "password")}
    config["ironic"]["servers"] = {
        f"farm-{conductors}-{number}": {
            **shared,
            "address": f"http://{plan.BOOT}:{_PORT}",
            "systemId": f"{bmc_farm.SYSTEMS}/{bmc_farm.identity(number)}",
        }
        for number in range(servers)
    }
    config["ironic"]["release"] = "remove"
    say(f"ironic: {servers} servers, {conductors} conductors")
    with _farm(project, servers) as farm, _Watch() as watch:
        given = json.dumps({"config": config, "mac": bmc_farm.mac(0)})
        command = [sys.executable, "-m", "tests.bench.ironic_load"]
        told = json.loads(project.facility(*command, stdin=given, seconds=_LIMIT))
    if not watch.most:
        raise BenchError("no process of a conductor was found")
    if told["failed"]:
        raise BenchError(f"{len(told['failed'])} of {servers} servers failed, such as: {told['failed'][0]}")
    return {
        "figure": "ironic",
        "servers": servers,
        "conductors": conductors,
        "deployed_seconds": told["deployed"],
        "given_back_seconds": told["given_back"],
        "memory_mib": watch.most >> 20,
        "cpu_seconds_per_server": round(watch.cpu_seconds / servers, 2),
        "bmc_requests_per_server": round(farm.requests / servers, 1),
    }


@dataclass
class _Farm:
    requests: int = 0
    """That all BMCs were asked; known at the end."""


@contextmanager
def _farm(project: Project, count: int) -> Generator[_Farm]:
    """The BMCs."""
    command = [sys.executable, "-m", "lab", "run", "--state", str(project.layout.state), "--"]
    command += [sys.executable, "-m", "tests.bench.bmc_farm", str(count), plan.BOOT, str(_PORT)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=project.root, env=project.environment(), stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    found = _Farm()
    try:
        if process.stdout.readline().strip() != "ready":
            raise BenchError("the BMCs do not start")
        yield found
        found.requests = int(process.communicate(timeout=30)[0])  # which ends its standard input
    finally:
        process.kill()
        process.wait()


@dataclass
class _Watch:
    """What all conductors need, looked at each second; those that are started while it looks count, too."""

    most: int = 0
    """Bytes of memory at one time; pages that they share count once."""
    cpu_seconds: float = 0.0
    _over: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def __enter__(self) -> _Watch:
        self._began = _of_conductors(_spent)
        self._thread = Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        assert self._thread is not None
        self._thread.join()
        self.cpu_seconds = _of_conductors(_spent) - self._began

    def _look(self) -> None:
        while not self._over.wait(1.0):
            self.most = max(self.most, int(_of_conductors(lambda each: each.memory_full_info().pss)))


def _spent(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


def _of_conductors(measured: Callable[[psutil.Process], float]) -> float:
    """The sum over all conductors and what they have started; what ends just now is not among them."""
    total = 0.0
    for pid in processes(*_CONDUCTOR):
        with suppress(psutil.Error):
            conductor = psutil.Process(pid)
            for each in (conductor, *conductor.children(recursive=True)):
                total += measured(each)
    return total
