"""A process from which Python plug-ins are forked, so that each starts at once.

The engine starts one plug-in after another and waits for each: 0.25 s, nearly all of it imports. The host process is
forked from the driver, which has imported most of that already. It imports the rest while the engine starts, and forks
a child for each plug-in. The engine itself starts `plugin_start.py`, which passes its arguments, environment and
standard streams to the host, and lives as long as the plug-in:

    engine killed, or done with the plug-in -> plugin_start ends  -> the plug-in is interrupted, as with Ctrl-C
    driver gone                             -> the host kills its children, and ends
    no host, or not the caller's            -> plugin_start runs the executable directly

The host listens on an abstract socket, so nothing must be cleaned up after a kill -9. It serves only its own user.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

VARIABLE = "METAL_IPI_PLUGIN_HOST"
"""Environment variable with the host's socket name, without the leading NUL of abstract sockets."""
START = "METAL_IPI_PLUGIN_START"
"""Environment variable with the path of `plugin_start.py`, because the plug-ins' executables do not know this
package."""
_STREAMS = 3
_CREDENTIALS = struct.Struct("3i")
_LENGTH = struct.Struct("!I")


def start(modules: Sequence[str]) -> None:
    """Forks the host from this process, which must have no other thread, and sets the environment variables for
    processes that are started from here.

    Args:
        modules: each has a function `main` without arguments that serves an engine. They are imported in advance.
    """
    name = f"metal-ipi-{os.getpid()}-{os.urandom(8).hex()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"\0{name}")
    listener.listen(64)
    leash, held = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork() == 0:
        os.close(held)
        _host(listener, leash, modules)
    os.close(leash)  # the other end stays open as long as this process lives
    listener.close()
    os.environ[VARIABLE] = name
    os.environ[START] = str(Path(__file__).with_name("plugin_start.py"))


def _host(listener: socket.socket, leash: int, modules: Sequence[str]) -> NoReturn:
    """Serves until the driver has ended."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)  # standard input may be the pipe between the two processes of a run
    children: set[int] = set()
    try:
        left = list(modules)
        while True:
            # Who asks early does not wait for what others need.
            ready, _, _ = select.select([listener, leash], [], [], 0 if left else 1.0)
            if not ready and left:
                importlib.import_module(left.pop(0))
                continue
            _reap(children)
            if leash in ready:
                break
            if listener in ready:
                connection, _ = listener.accept()
                if _is_same_user(connection):
                    child = os.fork()
                    if child == 0:
                        listener.close()
                        os.close(leash)
                        _become(connection)
                    children.add(child)
                connection.close()
    except BaseException:
        # Later plug-ins then find no host, and start without it.
        traceback.print_exc()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    os._exit(0)


def _reap(children: set[int]) -> None:
    for child in list(children):
        if os.waitpid(child, os.WNOHANG)[0] == child:
            children.discard(child)


def _is_same_user(connection: socket.socket) -> bool:
    return _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1] == os.geteuid()


def _become(connection: socket.socket) -> NoReturn:
    """Turns this process into the requested plug-in."""
    status = 1
    try:
        request, streams = _receive(connection)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(request["directory"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = request["arguments"]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=_end_with, args=[connection], daemon=True, name="end-with-start").start()
        importlib.import_module(request["module"]).main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _end_with(connection: socket.socket) -> None:
    """Interrupts this process when the process that the engine started has ended."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    # A signal to the process may reach another thread, and the main thread may sleep on.
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, streams, _, _ = socket.recv_fds(connection, _LENGTH.size, _STREAMS)
    (length,) = _LENGTH.unpack(head)
    text = b""
    while len(text) < length:
        text += connection.recv(length - len(text)) or _cut_off()
    return json.loads(text), list(streams)


def _cut_off() -> NoReturn:
    raise EOFError("whoever asked for a plug-in went away")
