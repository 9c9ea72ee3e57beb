"""IPMI over LAN of all BMCs of a rack, as virtualbmc does it: pyghmi's server side.

It is a process of its own, started by the service, because pyghmi has its sockets and threads in global variables. It
reaches the servers through the control socket.

virtualbmc itself needs libvirt's Python bindings, which have to be compiled, and supports libvirt machines only.
"""

# pyright: reportIncompatibleMethodOverride=false
# What pyghmi's Bmc does not implement is taken to return nothing at all.

from __future__ import annotations

import argparse
import traceback
import uuid
from typing import Any

from pyghmi.ipmi import bmc
from pyghmi.ipmi.private.session import Session

from lab.bmc import control
from lab.bmc.identity import Server
from lab.facts import require
from lab.layout import Layout

PORT = 623
_TARGETS = {"default": "None", "network": "Pxe", "hd": "Hdd", "optical": "Cd"}
_INVALID = 0xCC
_PERSISTENT = 0b0100_0000
_WAIT_SECONDS = 400.0
"""More than pyghmi's own select waits: for less, it wakes that by a packet to an address that it does not listen at."""


class Bmc(bmc.Bmc):
    """The IPMI side of one BMC: the same credentials, the same server."""

    def __init__(self, server: Server, layout: Layout, port: int = PORT) -> None:
        login = {server.bmc.username: server.bmc.password}
        super().__init__(login, port=port, bmcuuid=uuid.UUID(server.uuid), address=server.host)
        self._server = server
        self._layout = layout

    def get_power_state(self) -> str:
        """For `chassis power status`."""
        return self._ask(do="servers")[self._server.name]["power"]

    def power_off(self) -> None:
        """Hard."""
        self._power("off")

    def power_on(self) -> None:
        """Boot."""
        self._power("on")

    def power_cycle(self) -> None:
        """Off and on."""
        self._power("cycle")

    def power_reset(self) -> None:
        """The same, to a virtual machine."""
        self._power("cycle")

    def power_shutdown(self) -> None:
        """The power button."""
        self._power("shutdown")

    def cold_reset(self) -> None:
        """Restart the BMC."""
        self._power("bmc-reboot")

    def get_system_guid(self) -> uuid.UUID:
        """The server's."""
        return uuid.UUID(self._server.uuid)

    def get_boot_device(self) -> str:
        """The next boot device."""
        target = self._ask(do="servers")[self._server.name]["override"] or "None"
        return next((device for device, known in _TARGETS.items() if known == target), "default")

    def set_system_boot_options(self, request: Any, session: Any) -> None:
        """pyghmi forgets for how long; boot flags say it (IPMI 2.0, table 28-14)."""
        data = request["data"]
        if data[0] != 5:
            super().set_system_boot_options(request, session)
            return
        names = {0: "default", 1: "network", 2: "hd", 5: "optical"}
        device = names.get((data[2] >> 2) & 0b1111)
        if device is None:
            session.send_ipmi_response(code=_INVALID)
            return
        enabled = "Continuous" if data[1] & _PERSISTENT else "Once"
        self._ask(do="boot", server=self._server.name, target=_TARGETS[device], enabled=enabled)
        session.send_ipmi_response()

    def _power(self, to: str) -> None:
        self._ask(do="power", server=self._server.name, to=to)

    def _ask(self, **request: str) -> Any:
        return control.ask(self._layout, request)


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="lab.bmc.ipmi", description=__doc__)
    parser.add_argument("--state", required=True, help="the lab's state directory")
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args()
    layout = Layout.of(options.state)
    rack = require(layout).rack
    assert rack is not None, "the service that starts us has one"
    kept = [Bmc(server, layout, options.port) for server in rack.servers]
    print(f"IPMI of {len(kept)} BMCs", flush=True)
    while True:
        try:
            Session.wait_for_rsp(_WAIT_SECONDS)
        except Exception:  # pyghmi's, for a packet in a wrong place, which a BMC does not answer
            traceback.print_exc()


if __name__ == "__main__":
    main()
