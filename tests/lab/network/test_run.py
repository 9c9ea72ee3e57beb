"""`lab run`: transparent to the command, and the end of everything that it started."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.lab.network.conftest import ROOT, Lab
from tests.lab.waiting import processes, until

pytestmark = pytest.mark.lab


def test_streams_directory_environment_and_status_pass_through(running: Lab, tmp_path: Path) -> None:
    done = subprocess.run(
        running.command("sh", "-c", "cat; pwd; echo $MARK; echo oops >&2; exit 7"),
        input="hello\n",
        env={**os.environ, "MARK": "mine", "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == (f"hello\n{tmp_path}\nmine\n", "oops\n", 7)


def test_a_signal_becomes_a_status(running: Lab) -> None:
    assert running.run("sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_an_unknown_command_is_127(running: Lab) -> None:
    done = running.run("no-such-command")
    assert done.returncode == 127
    assert "no-such-command" in done.stderr


def test_it_nests(running: Lab) -> None:
    assert running.run(*running.command("echo", "inside")).stdout == "inside\n"


def test_it_costs_little(running: Lab) -> None:
    def seconds() -> float:
        started = time.monotonic()
        assert running.run("true").returncode == 0
        return time.monotonic() - started

    assert min(seconds() for _ in range(3)) < 0.5  # 0.09 s on an idle machine


def test_signals_reach_the_command_once(running: Lab) -> None:
    script = (
        "n=0; trap 'n=$((n+1)); echo interrupted' INT; trap 'echo $n; exit 3' TERM; "
        "echo ready; while :; do sleep 0.05; done"
    )
    with subprocess.Popen(running.command("sh", "-c", script), stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        # It takes the same way as the first one: whatever that became has arrived before it.
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "1\n"
        assert process.wait(5) == 3


def test_control_c_at_a_terminal_reaches_the_command_once(running: Lab) -> None:
    script = (
        "import signal, sys\n"
        "hits = 0\n"
        "def hit(number, frame):\n"
        "    global hits\n"
        "    hits += 1\n"
        "    print('hit', flush=True)\n"
        "signal.signal(signal.SIGINT, hit)\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(hits))\n"
        "print('ready', sys.stdin.isatty(), flush=True)\n"
        "while True: signal.pause()\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, running.command(sys.executable, "-c", script))
    output = b""
    with os.fdopen(terminal, "rb+", buffering=0) as stream:
        while b"\n" not in output:  # an interrupt discards what the terminal was not yet asked for
            output += stream.read(1024)
        assert b"True" in output
        stream.write(b"\x03")
        while b"hit" not in output:
            output += stream.read(1024)
        os.kill(pid, signal.SIGUSR1)  # it takes the way on which a second one would come
        with suppress(OSError):  # how Linux says that the other side of a terminal is gone
            while stream.read(1024):
                pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1, "as many as came"


def test_killing_it_kills_all_below(running: Lab) -> None:
    marker = f"3600.{os.getpid()}1"
    nested = f"(setsid sleep {marker} &) ; sleep {marker}"
    with subprocess.Popen(running.command("sh", "-c", nested), cwd=ROOT) as process:
        until(lambda: len(processes(marker)) >= 3)
        process.kill()
    until(lambda: not processes(marker))


def test_what_the_command_leaves_behind_ends_with_it(running: Lab) -> None:
    marker = f"3600.{os.getpid()}2"
    assert running.run("sh", "-c", f"setsid sleep {marker} >/dev/null 2>&1 &").returncode == 0
    until(lambda: not processes(marker))


def test_it_dies_with_its_parent(running: Lab) -> None:
    marker = f"3600.{os.getpid()}3"
    parent = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", parent, *running.command("sleep", marker)], cwd=ROOT, stdin=subprocess.DEVNULL
    ) as process:
        until(lambda: any(Path(f"/proc/{pid}/comm").read_text() == "sleep\n" for pid in processes(marker)))
        process.kill()
    until(lambda: not processes(marker))


def test_without_a_lab_it_says_how_to_start_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab", "run", "--state", str(tmp_path), "--", "true"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1
    assert "lab up" in done.stderr
