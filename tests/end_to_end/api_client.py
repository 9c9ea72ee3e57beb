"""A client of the API, behind the facility's router, that asks all the while: how it fares, and who answers it."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.kube_vip import KUBE_VIP
from tests.end_to_end.project import Project

_TRY = """
import json, socket, sys
def answers(address, port):
    try:
        socket.create_connection((address, port), 3).close()
    except OSError:
        return False
    return True
print(json.dumps({port: [each for each in sys.argv[1:] if answers(each, port)] for port in (6443, 22623)}))
"""


@dataclass(frozen=True)
class Answer:
    """One request of the prober."""

    began: float
    port: int
    well: bool


@dataclass(frozen=True)
class Phase:
    """How a client fared for a while."""

    name: str
    port: int
    requests: int
    failures: int
    gap: float
    """The longest time between the beginnings of requests that went well, seconds."""

    def __str__(self) -> str:
        return (
            f"{self.name}, {self.port}: {self.requests} requests, {self.failures} failed, longest gap {self.gap:.1f} s"
        )


def judge(name: str, answers: Sequence[Answer], since: float, until: float) -> list[Phase]:
    """Both ports between two moments; a gap counts from the beginning and to the end, too."""
    phases: list[Phase] = []
    for port in (6443, 22623):
        asked = [answer for answer in answers if answer.port == port and since <= answer.began <= until]
        good = [since, *sorted(answer.began for answer in asked if answer.well), until]
        gap = max(after - before for before, after in itertools.pairwise(good))
        phases.append(Phase(name, port, len(asked), sum(not answer.well for answer in asked), gap))
    return phases


class Facility:
    """The lab of a project, as the test uses it."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def routes(self) -> list[dict[str, Any]]:
        """What the router holds."""
        # `Project.lab` would write to the files that a run under way prints to.
        command = [sys.executable, "-m", "lab", "routes", "--state", str(self.project.layout.state)]
        done = subprocess.run(command, cwd=self.project.root, capture_output=True, text=True, check=True, timeout=30)
        return json.loads(done.stdout)["routes"]

    def announcing(self) -> list[str]:
        """The private addresses of the machines that announce."""
        return [address for route in self.routes() for address in route["via"]]

    def neighbour(self, address: str) -> str:
        """The hardware address of who answers for an address by ARP; empty while nobody has."""
        told: list[dict[str, Any]] = json.loads(self.project.facility("ip", "-j", "neighbour", "show", address) or "[]")
        return next((str(each["lladdr"]) for each in told if "lladdr" in each), "")

    def reached(self, addresses: Sequence[str]) -> dict[int, set[str]]:
        """By port, the addresses at which somebody answers from outside of the cluster's networks."""
        found = json.loads(self.project.facility(sys.executable, "-c", _TRY, *addresses))
        return {int(port): set(answering) for port, answering in found.items()}

    def power(self, way: str, device: str) -> float:
        """Switch a machine on or off; the moment before."""
        moment = time.monotonic()
        self.project.inside("call", "POST", f"/devices/{device}/actions", json.dumps({"type": f"power_{way}"}))
        return moment

    @contextmanager
    def client(self, address: str, file: Path) -> Generator[None]:
        """The prober, in a client's namespace behind the router."""
        lab = [sys.executable, "-m", "lab", "run", "--state", str(self.project.layout.state), "--"]
        client = [sys.executable, "-m", "lab.network.client", "--"]
        prober = [sys.executable, "-m", "tests.end_to_end.prober", address, str(file)]
        with subprocess.Popen([*lab, *client, *prober], cwd=self.project.root) as process:
            try:
                yield
            finally:
                process.terminate()


def assert_closed_to_others(facility: Facility, addresses: Sequence[str]) -> None:
    """Outside of the cluster's networks the API answers, and the machine config server does not."""
    assert facility.reached(addresses) == {6443: set(addresses), 22623: set()}


def read(file: Path) -> list[Answer]:
    """What the prober wrote; the last line may be cut off."""
    return [Answer(**json.loads(line)) for line in file.read_text().splitlines() if line.endswith("}")]


def report(phases: Mapping[str, Sequence[Phase]], limits: Mapping[str, float], *, fit: bool) -> None:
    """Print how the client fared; no gap may be longer than allowed, and starved machines have to answer at all."""
    for phase in itertools.chain(*phases.values()):
        print(phase)
    judged = [(phase, limit) for name, limit in limits.items() for phase in phases[name]]
    wrong = [phase for phase, limit in judged if (phase.gap > limit if fit else phase.failures == phase.requests)]
    assert not wrong, [str(phase) for phase in wrong]


def skip_unless(fit: bool, seconds: float) -> None:
    """Say that no gaps were judged."""
    if not fit:
        pytest.skip(
            f"all but the gaps: these processors are too slow or too busy to time them (up took {seconds:.0f} s)"
        )


def build_kube_vip() -> None:
    """What the machines pull; unless it is there."""
    if KUBE_VIP.cached() is None:
        KUBE_VIP.ensure(print)
