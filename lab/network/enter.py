"""Runs a command inside the lab: in its network and mounts, and in its own pid namespace, which ends with this process.

The process that the caller sees (A) joins the lab's namespaces and forks B, the first one inside the lab's pid
namespace; B makes a pid namespace for the command and forks its init, C; C forks the command. Should any of A, B, C be
killed, the kernel kills what is below, so that no half of an installation survives the other. A passes signals on, and
ends with the command's status.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from lab.errors import LabError, NotRunning
from lab.layout import Layout
from lab.network import namespaces
from lab.supervision import holder

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def run(layout: Layout, command: Sequence[str]) -> int:
    """Run `command` inside the lab with our directory, environment and files; returns its status (128+n: signal n)."""
    supervisor = holder(layout.lock)
    if supervisor is None:
        raise NotRunning(f"no lab runs in {layout.state}: start it with `python -m lab up --state {layout.state}`")
    sys.stdout.flush()
    sys.stderr.flush()
    if supervisor == 0:  # the caller is inside the lab already
        _execute(command)
    parent = os.getppid()
    directory = os.getcwd()  # noqa: PTH109 - a path object cannot go back after the mount namespace changed
    try:
        join(supervisor)
        os.chdir(directory)
    except OSError as error:
        raise LabError(f"cannot enter the lab in {layout.state}: {error}") from error
    namespaces.die_with_parent()  # only now: joining a user namespace would undo it
    if os.getppid() != parent:
        return 128 + signal.SIGKILL
    terminal = _foreground_terminal()
    alive, ours = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)  # they wait until whoever is to pass them on can do so
    inside = _fork(lambda: _inside(alive, ours, terminal is not None, command))
    os.close(alive)
    try:
        return _relay(inside)
    finally:
        if terminal is not None:
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # we are in the background until this call returns
            with suppress(OSError):
                os.tcsetpgrp(terminal, os.getpgrp())


def join(pid: int) -> None:
    """Join all namespaces of process `pid`."""
    opened = [(kind, os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)) for kind in namespaces.KINDS]
    for kind, descriptor in opened:
        if kind != "user" or os.stat(f"/proc/self/ns/{kind}").st_ino != os.fstat(descriptor).st_ino:  # noqa: PTH116
            namespaces.enter(descriptor, kind)
        os.close(descriptor)


def _foreground_terminal() -> int | None:
    """The controlling terminal, if we are the job that has it."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    if os.tcgetpgrp(terminal) == os.getpgrp():
        return terminal
    os.close(terminal)
    return None


def _fork(body: Callable[[], int]) -> int:
    """Fork a child that runs `body` and ends with what it returns; nothing of the parent runs in it."""
    child = os.fork()
    if child:
        return child
    status = 126
    try:
        status = body()
    except BaseException as error:
        os.write(2, f"lab run: {error}\n".encode())
    finally:
        os._exit(status)


def _inside(alive: int, ours: int, foreground: bool, command: Sequence[str]) -> int:
    """B: in the lab's pid namespace, but out of the caller's process group, so that only A tells it of signals."""
    namespaces.die_with_parent()
    os.close(ours)
    os.set_blocking(alive, False)
    with suppress(BlockingIOError):
        os.read(alive, 1)  # end of file: A died before it could take us along
        return 128 + signal.SIGKILL
    os.setpgid(0, 0)
    namespaces.unshare(namespaces.CLONE_NEWPID | namespaces.CLONE_NEWNS)
    return _relay(_fork(lambda: _init(foreground, command)))


def _init(foreground: bool, command: Sequence[str]) -> int:
    """C: process 1 of the command's namespace. When it ends, whatever the command left running ends too."""
    namespaces.die_with_parent()
    namespaces.mount_proc()

    def become() -> int:
        os.setpgid(0, 0)
        if foreground:
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
            os.tcsetpgrp(terminal, os.getpgrp())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # stopping it alone would leave the caller waiting for ever
        _execute(command)

    return _relay(_fork(become))


def _relay(child: int) -> int:
    """Pass signals on to `child` and wait for it, burying others meanwhile; returns its exit status."""

    def pass_on(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _execute(command: Sequence[str]) -> NoReturn:
    """Become `command`, as a shell would start it. What was sent to it until now reaches it here."""
    for number in _PASSED_ON:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these, and that would be inherited
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], list(command))  # noqa: S606
    except OSError as error:
        os.write(2, f"lab run: {command[0]}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
