"""A process from which the inner processes of a facility's stacks are forked.

An inner process takes more than a second of a processor to import what it needs, and a facility with worker pools has
one for each stack. They are all forked from one process that has imported everything, and share its memory. Each is
still the first process of its own PID namespace and has its own leash; see containment.py.

    outer process -- socket --> fork server -- forks --> a process that waits -- forks --> inner process
                  -- leash, standard streams --------------------------------------------->

A fork server that may not make PID namespaces says so, and inner processes are started without it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any, NoReturn

from tools import stackfile
from tools.containment import ALIVE, end
from tools.layout import Layout

_CLONE_NEWNS, _CLONE_NEWPID = 0x00020000, 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 18
_PR_SET_PDEATHSIG = 1
_LONGEST = 1 << 16
"""Of a message on the socket, in bytes."""
_PATIENCE = 10.0
"""How long a server may take to end, which may be importing still, in seconds."""
_KILLED = 128 + signal.SIGKILL


class ForkServer:
    """A fork server, as the outer process sees it."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        """`command`: starts a process that calls `serve`."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                list(command), cwd=cwd, env=dict(env), stdin=theirs.fileno(), start_new_session=True
            )
        self._ready = Future[bool]()
        self._running: dict[int, Future[int]] = {}
        self._numbers = itertools.count()
        self._listener = threading.Thread(target=self._listen, daemon=True, name="fork-server")
        self._listener.start()

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    def is_ready(self) -> bool:
        """Waits until the server has imported everything; returns False if it cannot be used here."""
        return self._ready.result()

    def run(
        self,
        arguments: Sequence[str],
        *,
        variables: Mapping[str, str],
        started: Callable[[IO[bytes]], None],
        line: Callable[[str], None] | None = None,
    ) -> int | None:
        """Runs a command of this package; otherwise as `run_leashed`. None: nothing was started, because the server
        was killed. Call this if `is_ready`.

        Args:
            arguments: of the command.
            variables: changes of the environment.
        """
        number, done = next(self._numbers), Future[int]()
        self._running[number] = done
        request = {"number": number, "arguments": list(arguments), "variables": dict(variables)}
        leash_end, leash = os.pipe()
        output, output_end = (None, None) if line is None else os.pipe()
        streams = [leash_end, *((1, 2) if output_end is None else (output_end, output_end))]
        with contextlib.ExitStack() as open_here:
            pipe = open_here.enter_context(os.fdopen(leash, "wb", buffering=0))
            lines = None if output is None else open_here.enter_context(os.fdopen(output, errors="replace"))
            try:
                socket.send_fds(self._socket, [json.dumps(request).encode()], streams)
            except OSError:  # the server was killed
                return None
            finally:
                for each in {*streams} - {1, 2}:
                    os.close(each)
            with contextlib.suppress(BrokenPipeError):  # the server was killed, and `done` says so
                pipe.write(ALIVE)
            started(pipe)
            if lines is not None and line is not None:
                for each in lines:
                    line(each.rstrip("\n"))
            return done.result()

    def close(self) -> None:
        """Ends the server. Call this when everything that it started has ended."""
        self._socket.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        self._socket.close()

    def _listen(self) -> None:
        while message := self._receive():
            told = json.loads(message)
            if "ready" in told:
                self._ready.set_result(told["ready"])
            else:
                self._running.pop(told["number"]).set_result(told["status"])
        if not self._ready.done():
            self._ready.set_result(False)
        for done in list(self._running.values()):
            done.set_result(_KILLED)

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(_LONGEST)
        except ConnectionResetError:
            return b""


def serve(layout: Layout, main: Callable[[Sequence[str]], int]) -> None:
    """Serves the outer process, to which standard input is connected, until it ends.

    Args:
        layout: the stack of the cluster.
        main: this package's command line; returns the exit status. Called in a new process.
    """
    connection = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    possible = _may_serve()
    if possible:
        _import(layout)
        gc.collect()
        gc.freeze()  # what is imported stays in memory that all share
    connection.send(json.dumps({"ready": possible}).encode())
    running: dict[int, tuple[int, int]] = {}
    """Descriptor of a process to its process id and the number of its request."""
    while True:
        for descriptor in select.select([connection.fileno(), *running], [], [])[0]:
            if descriptor in running:
                pid, number = running.pop(descriptor)
                os.close(descriptor)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                connection.send(json.dumps({"number": number, "status": status}).encode())
                continue
            message, streams, _, _ = socket.recv_fds(connection, _LONGEST, 3)
            if not message:
                return
            request = json.loads(message)
            pid = os.fork()
            if pid == 0:
                for each in (connection.fileno(), *running):
                    os.close(each)
                _become(request, streams, main)
            for each in streams:
                os.close(each)
            running[os.pidfd_open(pid)] = pid, request["number"]


def _become(request: dict[str, Any], streams: Sequence[int], main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Does what was asked for, in a new process of a PID namespace."""
    status = 1
    try:
        os.setsid()  # Ctrl-C reaches only the outer process
        for number, each in enumerate(streams):
            os.dup2(each, number)
        for each in streams:
            os.close(each)
        _contain()
        os.environ.update(request["variables"])
        status = main(request["arguments"])
    except BaseException:
        traceback.print_exc()
    end(status)


def _contain() -> None:
    """Goes on in a child, as the first process of a PID namespace with its own /proc. This process waits for the child,
    and ends as it did. If it or its parent is killed, so is the child. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def die_with_parent() -> None:
        check(libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0))

    die_with_parent()
    check(libc.unshare(_CLONE_NEWNS | _CLONE_NEWPID))
    child = os.fork()
    if child != 0:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(status if status >= 0 else 128 - status)
    die_with_parent()
    check(libc.mount(b"none", b"/proc", None, _MS_REC | _MS_PRIVATE, None))
    check(libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None))


def _may_serve() -> bool:
    """Whether this system, and this process, can do what a server does."""
    probe = os.fork()
    if probe == 0:
        with contextlib.suppress(OSError):
            os.pidfd_open(os.getpid())
            _contain()
            os._exit(0)
        os._exit(1)
    return os.waitpid(probe, 0)[1] == 0


def _import(layout: Layout) -> None:
    """Imports what the inner processes need. An error is theirs to report: they import it again."""
    from tools.program import import_program
    from tools.project import python_plugins

    with contextlib.suppress(Exception):
        import_program(layout.root)
        document = stackfile.read(layout.stack_file)
        platform = stackfile.platform_type(document).replace("-", "_")
        modules = ("tools.inner", "metal_ipi.stacks.pools.program", f"metal_ipi.stacks.platforms.{platform}.component")
        is_lab = stackfile.lab_machines(document) is not None
        for name in (*modules, *python_plugins(layout.root, with_stand_ins=is_lab)):
            importlib.import_module(name)
