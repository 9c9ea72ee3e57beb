"""Locks and leashes."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tools.containment import RunLock, at_work, contained
from tools.errors import StackError


def test_two_runs_of_a_stack_exclude_each_other(tmp_path: Path) -> None:
    first, second = RunLock(tmp_path / "t.lock"), RunLock(tmp_path / "t.lock")
    first.acquire()
    with pytest.raises(StackError, match="another run of this stack is in progress"):
        second.acquire(patience=0.2)
    first.release()
    second.acquire(patience=0.2)
    second.release()


def test_a_lock_whose_file_was_removed_is_taken_anew(tmp_path: Path) -> None:
    first, second, third = (RunLock(tmp_path / "t.lock") for _ in range(3))
    first.acquire()
    first.remove()
    second.acquire(patience=0.2)
    with pytest.raises(StackError):
        third.acquire(patience=0.2)
    second.release()


def test_a_killed_holder_holds_no_lock(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tools.containment import RunLock; "
        "lock = RunLock(Path(sys.argv[1])); lock.acquire(); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script]
    lock = RunLock(tmp_path / "t.lock")
    with subprocess.Popen(
        [*command, str(tmp_path / "t.lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StackError, match=r"another run of this stack is in progress \(t\)"):
            lock.acquire(patience=0.2)
        holder.kill()
        holder.wait()
        lock.acquire(patience=0.2)
    lock.release()


def test_a_run_of_an_older_version_is_excluded(tmp_path: Path) -> None:
    """It locks the same file with flock(2)."""
    lock = RunLock(tmp_path / "t.lock")
    with (tmp_path / "t.lock").open("a") as older:
        fcntl.flock(older, fcntl.LOCK_EX)
        with pytest.raises(StackError, match="another run"):
            lock.acquire(patience=0.2)
    lock.acquire(patience=0.2)
    with (tmp_path / "t.lock").open("a") as older, pytest.raises(BlockingIOError):
        fcntl.flock(older, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.release()


def test_without_a_leash_the_inner_half_refuses_to_run() -> None:
    command = [sys.executable, "-c", "from tools.containment import hold_leash; hold_leash(lambda: None, lambda: None)"]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "process was started directly" in result.stderr


def test_the_inner_half_ends_with_its_leash() -> None:
    script = (
        "import os, time; from tools.containment import hold_leash; "
        r"hold_leash(lambda: os.write(1, b'asked\n'), lambda: None); os.write(1, b'held\n'); time.sleep(60)"
    )
    command = contained([sys.executable, "-c", script])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"+s")
        process.stdin.flush()
        assert sorted(process.stdout.readline() for _ in range(2)) == [b"asked\n", b"held\n"]
        process.stdin.close()
        assert process.wait(timeout=10) == 137


def test_who_wants_a_directory_alone_leaves_it_to_those_at_work_there(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    with at_work(directory) as one, at_work(directory) as other:
        assert one and other
        with at_work(directory, alone=True) as alone:
            assert not alone
    with at_work(directory, alone=True) as alone:
        assert alone
        with at_work(directory, alone=True) as another:
            assert not another
    assert list(tmp_path.iterdir()) == [directory] and not list(directory.iterdir())


def test_who_comes_meanwhile_waits_and_finds_a_directory_again(tmp_path: Path) -> None:
    directory, held = tmp_path / "state", threading.Event()

    def come() -> None:
        with at_work(directory):
            held.set()

    with at_work(directory, alone=True):
        comer = threading.Thread(target=come)
        comer.start()
        assert not held.wait(0.3)
        directory.rmdir()
    comer.join(10)
    assert held.is_set() and directory.exists()
