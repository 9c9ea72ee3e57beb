"""Asks the plug-in host to start a plug-in. Runs as a file, and needs only the standard library.

    python -I -S plugin_start.py EXECUTABLE MODULE ARGUMENT...

EXECUTABLE is the program that the engine started. Without a host it is started again, without the variables that led
here.
"""

import json
import os
import signal
import socket
import struct
import sys

VARIABLE = "METAL_IPI_PLUGIN_HOST"
START = "METAL_IPI_PLUGIN_START"
LOOK_SECONDS = 0.5


def main() -> None:
    """Represents the plug-in's process for the engine: ends when the plug-in or the engine ends."""
    executable, module, *arguments = sys.argv[1:]
    host = os.environ.pop(VARIABLE)
    os.environ.pop(START, None)
    engine = os.getppid()
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(f"\0{host}")
        user = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        if user != os.geteuid():
            raise PermissionError(f"the plug-in host belongs to user {user}")
        request = {
            "module": module,
            "arguments": [executable, *arguments],
            "directory": os.getcwd(),  # noqa: PTH109  pathlib takes longer to import than all of this
            "environment": dict(os.environ),
        }
        text = json.dumps(request).encode()
        socket.send_fds(connection, [struct.pack("!I", len(text))], [0, 1, 2])
        connection.sendall(text)
    except OSError as error:
        print(f"plug-in host: {error}; starting {module} without it", file=sys.stderr)
        os.execv(executable, [executable, *arguments])  # noqa: S606  no shell is wanted
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The plug-in has the streams now. The engine must see them close when the plug-in ends.
    for stream in (0, 1, 2):
        os.close(stream)
    connection.settimeout(LOOK_SECONDS)
    while os.getppid() == engine:
        try:
            connection.recv(1)
        except TimeoutError:
            continue
        except OSError:
            pass
        break


main()
