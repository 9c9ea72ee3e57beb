"""A BMC's UpdateService, and the tasks that show the progress of operations (DSP0266, long-running operations)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import requests
from werkzeug.wrappers import Request, Response

from lab.bmc.documents import Json, collection, error, message, to_json
from lab.bmc.server import Server
from lab.bmc.work import VERSIONS, Job

ROOT = "/redfish/v1/UpdateService"
_ACTION = f"{ROOT}/Actions/UpdateService.SimpleUpdate"
_INVENTORY = f"{ROOT}/FirmwareInventory"
_SERVICE = "/redfish/v1/TaskService"
_TASKS = f"{_SERVICE}/Tasks"
_MONITORS = f"{_SERVICE}/TaskMonitors"
_KIND = "metal-ipi lab firmware"
_SECONDS = 10.0


def firmware(component: str, version: str) -> bytes:
    """A firmware file that BMCs of the lab accept."""
    return json.dumps({"kind": _KIND, "component": component, "version": version}).encode()


def accepted(job: Job) -> Response:
    """The answer that says where the job can be followed."""
    answer = to_json(_task(job))
    answer.status_code, answer.headers["Location"] = 202, f"{_MONITORS}/{job.id}"
    return answer


def _task(job: Job) -> Json:
    failed = job.state == "Exception"
    return {
        "@odata.type": "#Task.v1_4_3.Task",
        "@odata.id": f"{_MONITORS}/{job.id}",
        "Id": job.id,
        "Name": f"{job.what} {job.component or (job.volume.id if job.volume else '')}",
        "TaskMonitor": f"{_MONITORS}/{job.id}",
        "TaskState": job.state,
        "TaskStatus": "Critical" if failed else "OK",
        "PercentComplete": 100 if job.state == "Completed" else 0,
        "Messages": [message("Update.1.0.ApplyFailed", job.message)] if failed else [],
    }


class Updates:
    """The routes."""

    def __init__(self, server: Server, do: Callable[[Callable[[], Any]], Any], restart: Callable[[], None]) -> None:
        """`restart` is the BMC's own, which ends an update of it."""
        self._server, self._do, self._restart = server, do, restart

    def answer(self, request: Request, path: str) -> Response | None:
        """The answer; None for other paths."""
        if path == _ACTION and request.method == "POST":
            return self._update(request)
        if request.method != "GET":
            return None
        if path == ROOT:
            return to_json(_SERVICE_DOCUMENT)
        if path == _INVENTORY:
            return collection("SoftwareInventory", _INVENTORY, list(VERSIONS))
        if path.startswith(f"{_INVENTORY}/"):
            return self._component(path)
        if path == _SERVICE:
            told = {"@odata.id": path, "Id": "TaskService", "Name": "Tasks", "Tasks": {"@odata.id": _TASKS}}
            return to_json({"@odata.type": "#TaskService.v1_1_2.TaskService", "ServiceEnabled": True, **told})
        if path == _TASKS:
            return collection("Task", _TASKS, [job.id for job in self._server.settings.work.jobs])
        if path.startswith((f"{_TASKS}/", f"{_MONITORS}/")):
            return self._followed(path)
        return None

    def _update(self, request: Request) -> Response:
        wanted: Json = request.get_json(silent=True) or {}
        url = wanted.get("ImageURI")
        if not isinstance(url, str) or wanted.keys() - {"ImageURI", "TransferProtocol"}:
            return error(400, "Base.1.0.ActionParameterMissing", "SimpleUpdate takes ImageURI and TransferProtocol")
        component, version, problem = _read(url)
        return accepted(self._do(lambda: self._server.update(component, version, problem)))

    def _component(self, path: str) -> Response:
        name = path.rpartition("/")[2]
        if name not in VERSIONS:
            return error(404, "Base.1.0.ResourceMissingAtURI", path)
        about = {"@odata.type": "#SoftwareInventory.v1_3_0.SoftwareInventory", "@odata.id": path, "Id": name}
        version = self._server.settings.work.versions[name]
        return to_json({**about, "Name": name, "Version": version, "Updateable": True})

    def _followed(self, path: str) -> Response:
        if self._do(self._server.lapse):
            self._restart()
        job = next((each for each in self._server.settings.work.jobs if each.id == path.rpartition("/")[2]), None)
        if job is None:
            return error(404, "Base.1.0.ResourceMissingAtURI", path)
        answer = to_json(_task(job))
        if path.startswith(_MONITORS) and job.state in ("Pending", "Starting"):
            answer.status_code = 202
        return answer


def _read(url: str) -> tuple[str, str, str]:
    """Component and version of a firmware file, or what is wrong with it."""
    try:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(url, timeout=_SECONDS)
            answer.raise_for_status()
        told: Any = answer.json()
    except (requests.RequestException, ValueError) as problem:
        return "", "", f"the file cannot be read: {problem}"
    if not isinstance(told, dict) or told.get("kind") != _KIND or told.get("component") not in VERSIONS:
        return "", "", "the file is not firmware of this server"
    return told["component"], str(told["version"]), ""


_SERVICE_DOCUMENT: Json = {
    "@odata.type": "#UpdateService.v1_8_0.UpdateService",
    "@odata.id": ROOT,
    "Id": "UpdateService",
    "Name": "Update Service",
    "ServiceEnabled": True,
    "FirmwareInventory": {"@odata.id": _INVENTORY},
    "Actions": {
        "#UpdateService.SimpleUpdate": {
            "target": _ACTION,
            "TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS"],
        }
    },
}
