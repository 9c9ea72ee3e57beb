"""The lab's service `hub`: makes the hub's namespaces and its cable, and lives as long as they do.

`python -m lab.hub --state DIR`, inside the lab's namespaces.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from lab.errors import LabError, ServiceFailed
from lab.hub.objects import UPLINK
from lab.layout import Layout
from lab.network import namespaces, plan

_CABLE = "hub0"
"""The facility's end of the cable."""
_UNSHARE = (
    *("setpriv", "--pdeathsig", "KILL", "--"),  # what runs there does not outlive whoever starts it again
    *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)
_START_SECONDS = 10.0
_END_SECONDS = 30.0


def main() -> int:
    """Run the hub until SIGTERM, or until it ends."""
    parser = argparse.ArgumentParser(prog="lab.hub", description=__doc__)
    parser.add_argument("--state", required=True, help="the lab's state directory")
    layout = Layout.of(parser.parse_args().state)
    signal.signal(signal.SIGTERM, _end)
    command = [*_UNSHARE, sys.executable, "-m", "lab.hub.node", "--state", str(layout.state)]
    hub = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        _plug_in(hub)
        return hub.wait()
    except (LabError, subprocess.CalledProcessError) as error:
        print(f"the hub cannot be started: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        _stop(hub)


def _end(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _plug_in(hub: subprocess.Popen[bytes]) -> None:
    """Lay a cable from the facility's bridge into the hub's network namespace, as soon as there is one."""
    ours = namespaces.identity("self", "net")
    deadline = time.monotonic() + _START_SECONDS
    while namespaces.identity(hub.pid, "net") == ours:
        if hub.poll() is not None or time.monotonic() > deadline:
            raise ServiceFailed("it did not make its namespaces")
        time.sleep(0.01)
    # The kernel takes the cable of a hub that was killed away some time after its last process.
    subprocess.run(["ip", "link", "delete", _CABLE], check=False, capture_output=True, timeout=10)
    lines = [
        f"link add {_CABLE} type veth peer name {UPLINK} netns {hub.pid}",
        f"link set {_CABLE} master {plan.BRIDGE} up",
    ]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True, timeout=10)


def _stop(hub: subprocess.Popen[bytes]) -> None:
    """End what runs below `unshare`, the patient way first."""
    if hub.poll() is not None:
        return
    for child in Path(f"/proc/{hub.pid}/task/{hub.pid}/children").read_text().split():
        os.kill(int(child), signal.SIGTERM)
    try:
        hub.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        hub.kill()
        hub.wait()


if __name__ == "__main__":
    sys.exit(main())
