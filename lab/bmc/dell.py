"""The Dell extension of iDRACs that Ironic's driver idrac uses: boot from the virtual drive (sushy/oem/dell).

According to that driver, Redfish's own override selects the physical drive of the server there
(ironic/drivers/modules/drac/boot.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from werkzeug.wrappers import Request, Response

from lab.bmc.documents import Json, error
from lab.bmc.faults import Refused
from lab.bmc.server import Override, Server

_ACTION = "#OemManager.ImportSystemConfiguration"
_BOOT = re.compile(
    r'<SystemConfiguration><Component FQDD="[^"]+"><Attribute Name="ServerBoot\.1#BootOnce">(Enabled|Disabled)'
    r'</Attribute><Attribute Name="ServerBoot\.1#FirstBootDevice">VCD-DVD</Attribute></Component>'
    r"</SystemConfiguration>"
)


class Dell:
    """The routes of a BMC that is an iDRAC."""

    def __init__(self, manager: str, server: Server, do: Callable[[Callable[[], Any]], Any]) -> None:
        """`manager` is the path of the Manager."""
        self._target = f"{manager}/Actions/Oem/EID_674_Manager.ImportSystemConfiguration"
        self._server, self._do = server, do

    def answer(self, request: Request, path: str) -> Response | None:
        """The answer; None for other paths."""
        if not self._server.settings.dell or request.method != "POST" or path != self._target:
            return None
        wanted: Json = request.get_json(silent=True) or {}
        found = _BOOT.fullmatch(str(wanted.get("ImportBuffer")))
        if found is None:
            return error(501, "Base.1.0.ActionNotSupported", "the lab's BMCs import a boot from the virtual drive only")
        boot = Override(enabled="Once" if found[1] == "Enabled" else "Continuous", target="Cd", virtual=True)
        try:
            self._do(lambda: self._server.set_override(boot))
        except Refused as refusal:
            return error(400, "Base.1.0.PropertyValueNotInList", str(refusal))
        return Response(status=204)

    def amend_manager(self, document: Json) -> None:
        """The Manager resource."""
        if self._server.settings.dell:
            document["Manufacturer"] = "Dell Inc."
            document["Oem"] = {"Dell": {"@odata.type": "#DellOem.v1_3_0.DellOemLinks"}}
            document["Actions"]["Oem"] = {_ACTION: {"target": self._target}}
