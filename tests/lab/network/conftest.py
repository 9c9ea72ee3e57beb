"""Labs without the Metal API, in temporary state directories."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import control, facts
from lab.layout import Layout
from lab.supervision import Supervisor
from tests.lab.openshift import kinds

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Lab:
    """A lab under test."""

    layout: Layout

    def up(
        self,
        services: Sequence[str] = ("dns", "boot"),
        machines: str = "simulated",
        openshift: Path = Path("/nonexistent"),
        *,
        real_kubernetes: bool = True,
        disconnected: bool = False,
        shared_api_servers: bool = False,
    ) -> list[str]:
        """Start it; returns what was said."""
        said: list[str] = []
        wanted = control.Wanted(
            layout=self.layout,
            machines=machines,
            services=tuple(services),
            openshift=lambda: kinds.of(openshift),
            real_kubernetes=real_kubernetes,
            disconnected=disconnected,
            shared_api_servers=shared_api_servers,
        )
        control.up(wanted, said.append)
        return said

    def command(self, *command: str) -> list[str]:
        """The command line that runs `command` inside."""
        return [sys.executable, "-m", "lab", "run", "--state", str(self.layout.state), "--", *command]

    def run(self, *command: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command inside."""
        return subprocess.run(
            self.command(*command), input=stdin, capture_output=True, text=True, timeout=30, check=False, cwd=ROOT
        )

    def python(self, code: str, *arguments: str) -> str:
        """Run Python code inside; returns what it printed."""
        done = self.run(sys.executable, "-c", code, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def python_of_a_client(self, code: str, *arguments: str) -> str:
        """Run Python code as a client outside of the facility; returns what it printed."""
        client = (sys.executable, "-m", "lab.network.client", "--", sys.executable, "-c", code)
        done = self.run(*client, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def facts(self) -> facts.Facts:
        """Its facts."""
        return facts.require(self.layout)

    def cut_power(self) -> None:
        """kill -9 of the supervisor."""
        supervisor = Supervisor.find(self.layout.lock)
        assert supervisor is not None
        supervisor.send(signal.SIGKILL)
        assert supervisor.wait(10)
        os.close(supervisor.pidfd)


def made(state: Path) -> Generator[Lab, None, None]:
    """A lab below `state` that is not started yet, and is stopped at the end."""
    refusal = control.sandbox_refusal()
    if refusal is not None:
        pytest.skip(f"this system allows no namespaces: {refusal}")
    lab = Lab(Layout.of(state))
    yield lab
    control.stop(lab.layout)


@pytest.fixture
def lab(tmp_path: Path) -> Generator[Lab, None, None]:
    """A lab that the test starts itself."""
    yield from made(tmp_path / "lab")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Lab, None, None]:
    """One that runs, shared by a module's tests."""
    for lab in made(tmp_path_factory.mktemp("running") / "lab"):
        lab.up()
        yield lab
