"""A small API server of the lab's own, where there is no kube-apiserver or a stack asks for none (lab/openshift).

All of a cluster share one directory of objects, so they need no etcd.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path

from lab.errors import ServiceFailed
from lab.kubernetes.process import Process
from lab.kubernetes.server import Place

OBJECTS = "objects"
"""Where a cluster's directory has them; the clusters that have it stay with small servers."""

_READY_SECONDS = 20.0
_POLL_SECONDS = 0.05


class SmallServer:
    """One small API server of a cluster."""

    def __init__(self, place: Place, objects: Path, program: str) -> None:
        """`program`: lab-openshift."""
        self.place = place
        command = [
            program,
            "small-apiserver",
            f"--listen={place.address}:{place.port}",
            f"--store={objects}",
            f"--clients={place.clients}",
            f"--certificate={place.certificate}",
            f"--key={place.key}",
        ]
        self.process = Process("small-apiserver", command, place.directory / "small-apiserver.log")

    def wait_ready(self, *, joining: bool = False) -> None:
        """Wait until it listens. Raises ServiceFailed when it ends, or time does."""
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            self.process.check()
            try:
                socket.create_connection((self.place.address, self.place.port), timeout=1).close()
            except OSError:
                if time.monotonic() > deadline:
                    raise ServiceFailed(f"the small API server does not listen:\n{self.process.last_lines()}") from None
                time.sleep(_POLL_SECONDS)
            else:
                return
