"""Volumes of a BMC's storage controller, as Redfish has them: made of drives, and deleted (DSP0268, Volume)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from werkzeug.wrappers import Request, Response

from lab.bmc.documents import Json, collection, error, to_json
from lab.bmc.faults import Refused
from lab.bmc.server import Server
from lab.bmc.told import DISKS
from lab.bmc.updates import accepted
from lab.bmc.work import Job, Volume
from lab.machines.base import MachineSpec

_APPLY = "@Redfish.OperationApplyTime"
_LEAST = {"RAID0": 1, "RAID1": 2}
"""The least number of drives by RAIDType."""


class Storage:
    """The controller's routes. Changes are carried out in the event loop."""

    def __init__(self, path: str, server: Server, spec: MachineSpec, do: Callable[[Callable[[], Any]], Any]) -> None:
        """`path` is that of the Storage resource."""
        self._path, self._server, self._spec, self._do = path, server, spec, do

    def answer(self, request: Request, path: str) -> Response | None:
        """The answer; None for other paths."""
        root = f"{self._path}/Volumes"
        if path != root and not path.startswith(f"{root}/"):
            return None
        work = self._server.settings.work
        if path == root:
            if request.method == "POST":
                return self._create(request)
            support = {"SupportedValues": ["OnReset" if work.on_reset else "Immediate"]}
            names = [volume.id for volume in work.volumes]
            told = {"@odata.type": "#Settings.v1_3_0.OperationApplyTimeSupport", **support}
            return collection("Volume", root, names, **{"@Redfish.OperationApplyTimeSupport": told})
        volume = next((each for each in work.volumes if f"{root}/{each.id}" == path), None)
        if volume is None:
            return error(404, "Base.1.0.ResourceMissingAtURI", path)
        if request.method == "DELETE":
            return self._changed(request, "delete", volume) or Response(status=204)
        return to_json(self._shown(volume))

    def amend(self, document: Json) -> None:
        """The Storage resource: what its controller can do."""
        for controller in document["StorageControllers"]:
            controller["SupportedRAIDTypes"] = list(_LEAST)

    def amend_drive(self, document: Json) -> None:
        """A drive, with the volumes that use it."""
        volumes = [each for each in self._server.settings.work.volumes if document["Id"] in each.drives]
        document["Links"] = {"Volumes": [{"@odata.id": f"{self._path}/Volumes/{each.id}"} for each in volumes]}

    def _shown(self, volume: Volume) -> Json:
        drives = [{"@odata.id": f"{self._path}/Drives/{serial}"} for serial in volume.drives]
        return {
            "@odata.type": "#Volume.v1_5_0.Volume",
            "@odata.id": f"{self._path}/Volumes/{volume.id}",
            "Id": volume.id,
            "Name": volume.name,
            "RAIDType": volume.raid,
            "CapacityBytes": volume.capacity * DISKS,
            "Links": {"Drives": drives},
            "Status": {"State": "Enabled", "Health": "OK"},
        }

    def _create(self, request: Request) -> Response:
        wanted: Json | None = request.get_json(silent=True)
        if not isinstance(wanted, dict):
            return error(400, "Base.1.0.MalformedJSON", "the body is not a JSON object")
        if self._server.faults.strike("raid_refused"):
            return error(400, "Base.1.0.GeneralError", "the controller's battery is being charged")
        try:
            volume = self._made(wanted)
        except Refused as refusal:
            return error(400, "Base.1.0.PropertyValueNotInList", str(refusal))
        pending = self._changed(request, "create", volume)
        if pending is not None:
            return pending
        answer = to_json(self._shown(volume))
        answer.status_code, answer.headers["Location"] = 201, f"{self._path}/Volumes/{volume.id}"
        return answer

    def _made(self, wanted: Json) -> Volume:
        known = {"RAIDType", "CapacityBytes", "Links", "Name", _APPLY}
        if wanted.keys() - known:
            raise Refused(f"a volume has no writable {', '.join(sorted(wanted.keys() - known))}")
        raid, work = str(wanted.get("RAIDType")), self._server.settings.work
        if raid not in _LEAST:
            raise Refused(f"RAIDType {raid!r} is not one of {', '.join(_LEAST)}")
        drives = {f"{self._path}/Drives/{disk.serial}": disk for disk in self._spec.disks}
        chosen: list[str] = [each["@odata.id"] for each in wanted.get("Links", {}).get("Drives", [])]
        if set(chosen) - drives.keys() or len(set(chosen)) < _LEAST[raid]:
            raise Refused(f"{raid} takes {_LEAST[raid]} drives of {', '.join(drives)}, not {', '.join(chosen)}")
        serials = [drives[each].serial for each in chosen]
        pending = [job.volume for job in work.jobs if job.state == "Pending" and job.what == "create" and job.volume]
        for volume in (*work.volumes, *pending):
            if set(serials) & set(volume.drives):
                raise Refused(f"drives of {volume.id} are in use: delete that volume first")
        sizes = [drives[each].size_mib << 20 for each in chosen]
        most = min(sizes) * (len(sizes) if raid == "RAID0" else 1)
        asked = wanted.get("CapacityBytes") or most * DISKS  # as the drives' sizes are told
        capacity = int(asked) // DISKS
        if not 0 < capacity <= most:
            raise Refused(f"CapacityBytes {asked} is not between {DISKS} and {most * DISKS}")
        name = f"{self._server.identity.serial}V{work.number()}"
        return Volume(id=name, name=str(wanted.get("Name") or name), raid=raid, capacity=capacity, drives=serials)

    def _changed(self, request: Request, what: Literal["create", "delete"], volume: Volume) -> Response | None:
        """The answer of a change that waits for a restart; None: it is done."""
        asked = (request.get_json(silent=True) or {}).get(_APPLY)
        supported = "OnReset" if self._server.settings.work.on_reset else "Immediate"
        if asked not in (None, supported):
            return error(400, "Base.1.0.PropertyValueNotInList", f"{_APPLY} {asked!r} is not {supported}")
        job: Job | None = self._do(lambda: self._server.change(what, volume))
        return None if job is None else accepted(job)
