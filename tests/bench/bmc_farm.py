"""Many BMCs that nothing is behind, in the facility's network: `bmc_farm COUNT ADDRESS PORT`.

They are sushy-tools' own simulated systems at one address, which are on or off after some seconds. It ends with its
standard input, and prints how many requests there were.
"""

from __future__ import annotations

import itertools
import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import UUID

import urllib3
from werkzeug.serving import make_server

SYSTEMS = "/redfish/v1/Systems"


def identity(number: int) -> str:
    """The id of one of the systems."""
    return str(UUID(int=number + 1))


def mac(number: int) -> str:
    """Its MAC address."""
    return "52:54:01:" + ":".join(f"{part:02x}" for part in number.to_bytes(3, "big"))


def _application(count: int, directory: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # WebOb, which sushy-tools imports, imports cgi
        from sushy_tools.emulator import main

    systems = [
        {
            "uuid": identity(number),
            "name": f"server-{number}",
            "power_state": "Off",
            "external_notifier": False,
            "nics": [{"mac": mac(number), "ip": "192.0.2.254"}],
        }
        for number in range(count)
    ]
    main.app.configure(
        extra_config={
            "SUSHY_EMULATOR_FAKE_DRIVER": True,
            "SUSHY_EMULATOR_FAKE_SYSTEMS": systems,
            "SUSHY_EMULATOR_STATE_DIR": str(directory),
        }
    )
    urllib3.disable_warnings()  # whom the emulation trusts for discs is not what is measured
    for each in (main.app.logger, logging.getLogger("werkzeug")):
        each.setLevel("ERROR")
    return main.app


def serve(count: int, address: str, port: int) -> int:
    """Serve until standard input ends; how many requests there were."""
    with tempfile.TemporaryDirectory() as directory:
        tempfile.tempdir = directory  # what is put into drives is kept there
        application, requests = _application(count, Path(directory)), itertools.count()

        def counted(environment: Any, start: Any) -> Any:
            next(requests)
            return application(environment, start)

        server = make_server(address, port, counted, threaded=True)
        Thread(target=server.serve_forever, daemon=True).start()
        print("ready", flush=True)
        sys.stdin.read()
        server.shutdown()
        return next(requests)


if __name__ == "__main__":
    print(json.dumps(serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))), flush=True)
