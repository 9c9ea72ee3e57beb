"""Inner processes that are forked from one that has imported everything."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tools.fork_server import ForkServer
from tools.layout import ROOT

_SERVE = """
import os, sys, time
from pathlib import Path
from tools import fork_server
from tools.containment import hold_leash
from tools.layout import Layout

def main(arguments):
    hold_leash(lambda: print("asked to stop", flush=True), lambda: None)
    what, *rest = arguments
    if what == "tell":
        processes = [each for each in os.listdir("/proc") if each.isdigit()]
        print(os.getpid(), processes, os.getsid(0), os.environ["REPLACE"], *rest, imported)
        print("to stderr", file=sys.stderr)
        return 7
    if what == "raise":
        raise ValueError("of a program")
    print("begun", os.readlink("/proc/self"), flush=True)
    time.sleep(60)

def imports(layout):
    global imported
    imported = f"imported for {layout.stack}"

fork_server._import = imports
if sys.argv[1:]:
    fork_server._may_serve = lambda: False
fork_server.serve(Layout(root=Path("/"), stack="lab"), main)
"""


@pytest.fixture
def server() -> Iterator[ForkServer]:
    """A fork server."""
    for found in _server(sys.executable, "-c", _SERVE):
        if not found.is_ready():
            pytest.skip("this system lets us make no PID namespace")
        yield found


def _server(*command: str) -> Iterator[ForkServer]:
    found = ForkServer(command, cwd=ROOT, env={**os.environ, "REPLACE": "what the server has"})
    yield found
    found.close()


def _run(server: ForkServer, *arguments: str, leashes: list[IO[bytes]] | None = None) -> tuple[int | None, list[str]]:
    said: list[str] = []
    started = [] if leashes is None else leashes
    status = server.run(arguments, variables={"REPLACE": "worker-0"}, started=started.append, line=said.append)
    return status, said


def _begin(server: ForkServer) -> tuple[threading.Thread, list[str], list[int | None], IO[bytes]]:
    """Start a process that lasts: who waits for it, what it says, its status, and its leash."""
    said, ended, leashes = list[str](), list[int | None](), list[IO[bytes]]()

    def run() -> None:
        ended.append(server.run(["last"], variables={}, started=leashes.append, line=said.append))

    waits = threading.Thread(target=run)
    waits.start()
    until = time.monotonic() + 30
    while not said and time.monotonic() < until:
        time.sleep(0.02)
    assert said == ["begun 1"]
    return waits, said, ended, leashes[0]


def test_each_is_the_first_process_of_its_own_namespace_and_has_what_was_imported(server: ForkServer) -> None:
    for _ in range(2):
        status, said = _run(server, "tell", "more")
        assert status == 7
        assert sorted(said) == ["1 ['1'] 0 worker-0 more imported for lab", "to stderr"], "its session is outside"


def test_several_run_beside_each_other_and_stop_when_they_are_asked_to(server: ForkServer) -> None:
    one, other = _begin(server), _begin(server)
    one[3].write(b"s")
    one[3].close()
    one[0].join(30)
    assert one[1:3] == (["begun 1", "asked to stop"], [137])
    assert other[0].is_alive() and not other[2]
    other[3].close()
    other[0].join(30)
    assert other[2] == [137]


def test_an_error_is_told(server: ForkServer) -> None:
    status, said = _run(server, "raise")
    assert status == 1 and said[-1] == "ValueError: of a program"


def test_a_killed_process_that_waits_takes_the_inner_process_with_it(server: ForkServer) -> None:
    waits, _, ended, _ = _begin(server)
    waiting = [int(each) for each in _children(server.pid)]
    assert len(waiting) == 1
    (inner,) = _children(waiting[0])
    os.kill(waiting[0], signal.SIGKILL)
    waits.join(30)
    assert ended == [-signal.SIGKILL]
    assert not _lives(inner)


def test_a_killed_server_leaves_nothing(server: ForkServer) -> None:
    waits, _, ended, _ = _begin(server)
    (waiting,) = _children(server.pid)
    (inner,) = _children(waiting)
    os.kill(server.pid, signal.SIGKILL)
    waits.join(30)
    assert ended == [137]
    assert not _lives(inner)
    assert _run(server, "tell") == (None, []), "what comes later is not begun"


@pytest.mark.parametrize("command", [("true",), (sys.executable, "-c", _SERVE, "may not")], ids=["ends", "may not"])
def test_a_server_that_cannot_says_so(command: tuple[str, ...]) -> None:
    for server in _server(*command):
        assert not server.is_ready()


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _lives(pid: int) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except (FileNotFoundError, ProcessLookupError):
            return False
        time.sleep(0.02)
    return True
