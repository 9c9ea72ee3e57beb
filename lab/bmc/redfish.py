"""A BMC's Redfish service: sushy-tools' application, with additions that real BMCs have.

That is: logins, boot source overrides for one boot (sushy-tools sets them for ever), BootProgress, serial numbers,
entity tags, memory, the manager's clock and its reset; volumes (`storage`), firmware and tasks (`updates`). Property
names are those of DSP0266 and DSP2046.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from werkzeug.wrappers import Request, Response

from lab.bmc import sessions
from lab.bmc.application import STORAGE
from lab.bmc.dell import Dell
from lab.bmc.documents import Json, collection, error, to_json
from lab.bmc.driver import Loop
from lab.bmc.faults import Refused
from lab.bmc.inventory import Inventory
from lab.bmc.server import RESETS, TARGETS, Override, Server
from lab.bmc.storage import Storage
from lab.bmc.updates import Updates
from lab.bmc.wire import cut
from lab.bmc.work import BMC
from lab.machines.base import MachineSpec

RESTART_SECONDS = 3.0
"""Seconds for which a BMC that restarts does not answer."""
_OPEN = {"", "/redfish", "/redfish/v1"}

_log = logging.getLogger(__name__)


class Redfish:
    """The WSGI application of one BMC."""

    def __init__(self, application: Any, server: Server, spec: MachineSpec, loop: Loop) -> None:
        self._application = application
        self._server = server
        self._loop = loop
        self._spec = spec
        self._inventory = Inventory(server, spec)
        self._away_until = 0.0
        self.sessions = sessions.Sessions(server.identity.bmc.username, server.identity.bmc.password)
        system, manager = f"/redfish/v1/Systems/{spec.id}", f"/redfish/v1/Managers/{spec.id}"
        self._own: dict[tuple[str, str], Callable[[Request], Response]] = {
            ("PATCH", system): self._patch_system,
            ("POST", f"{manager}/Actions/Manager.Reset"): self._restart,
            ("GET", sessions.ROOT): self._session_service,
            ("GET", sessions.COLLECTION): self._list_sessions,
        }
        storage = f"{system}/Storage/{STORAGE}"
        self._storage = Storage(storage, server, spec, self._in_loop)
        self._updates = Updates(server, self._in_loop, self.restart)
        self._dell = Dell(manager, server, self._in_loop)
        self._amend: list[tuple[str, Callable[[Json], None]]] = [
            (r"/redfish/v1", self._amend_root),
            (re.escape(system), self._amend_system),
            (re.escape(manager), self._amend_manager),
            (rf"/redfish/v1/Chassis/{spec.id}", self._amend_chassis),
            (rf"{re.escape(system)}/SecureBoot", self._amend_secure_boot),
            (rf"{re.escape(system)}/EthernetInterfaces/[^/]+", self._inventory.amend_card),
            (re.escape(storage), self._storage.amend),
            (rf"{re.escape(storage)}/Drives/[^/]+", self._amend_drive),
        ]

    @property
    def away(self) -> bool:
        """Whether the BMC does not answer: it restarts, has no power, or has such a fault."""
        server = self._server
        return server.lost_power or server.faults.find("away") is not None or time.monotonic() < self._away_until

    def restart(self) -> None:
        """Stop answering for a while, and end sessions. The server is not affected."""
        self.sessions.tokens.clear()
        self._away_until = time.monotonic() + RESTART_SECONDS

    def __call__(self, environ: Json, start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        response = self._answer(request)
        _log.info("%s %s %s %d", self._server.identity.name, request.method, request.path, response.status_code)
        return response(environ, start_response)

    def _answer(self, request: Request) -> Response:
        faults = self._server.faults
        slow = faults.strike("slow")
        if slow is not None:
            time.sleep(slow.seconds or 0)
        if self.away or faults.strike("reset"):
            cut(request.environ)
        if faults.strike("unavailable"):
            return error(503, "Base.1.0.ServiceTemporarilyUnavailable", "the service is busy", {"Retry-After": "1"})
        path = request.path.rstrip("/")
        if request.method == "POST" and path == sessions.COLLECTION:
            return self._log_in(request)
        if path not in _OPEN:
            if "X-Auth-Token" in request.headers and faults.strike("session_lost"):
                self.sessions.tokens.clear()
            if not self.sessions.admits(request):
                basic = {"WWW-Authenticate": 'Basic realm="BMC"'}
                return error(401, "Base.1.0.NoValidSession", "no valid session, or wrong credentials", basic)
        if request.method == "DELETE" and path.startswith(f"{sessions.COLLECTION}/"):
            known = self.sessions.tokens.pop(path.rpartition("/")[2], None)
            return Response(status=204) if known else error(404, "Base.1.0.ResourceMissingAtURI", path)
        own = self._own.get((request.method, path))
        if own is not None:
            return own(request)
        answer = self._resource(path, request)
        expands = request.method == "GET" and "$expand" in request.args
        return self._expanded(answer, request) if expands else answer

    def _resource(self, path: str, request: Request) -> Response:
        made = self._inventory.document(path) if request.method == "GET" else None
        if made is not None:
            return to_json(made)
        for part in (self._storage, self._updates, self._dell):
            answered = part.answer(request, path)
            if answered is not None:
                return answered
        response = Response.from_app(self._application, request.environ, buffered=True)
        shown = request.method == "GET" and response.status_code == 200
        return self._amended(path, response) if shown else response

    def _expanded(self, answer: Response, request: Request) -> Response:
        """What is listed takes the place of its links, one level deep (DSP0266, query parameters)."""
        if answer.status_code != 200:
            return answer
        document: Json = json.loads(answer.get_data())
        for name, value in document.items():
            if isinstance(value, list):
                document[name] = [self._linked(item, request) for item in value]
        return to_json(document)

    def _linked(self, item: Any, request: Request) -> Any:
        if not isinstance(item, dict) or set(item) != {"@odata.id"}:
            return item
        inner = Request.from_values(path=item["@odata.id"], base_url=request.host_url)
        found = self._resource(inner.path.rstrip("/"), inner)
        return json.loads(found.get_data()) if found.status_code == 200 else item

    def _amended(self, path: str, response: Response) -> Response:
        for pattern, amend in self._amend:
            if re.fullmatch(pattern, path):
                document: Json = json.loads(response.get_data())
                amend(document)
                answer = to_json(document)
                if "@odata.etag" in document:
                    answer.headers["ETag"] = document["@odata.etag"]
                return answer
        return response

    # ------------------------------------------------------------------------------------------------- what is added

    def _amend_root(self, document: Json) -> None:
        document["UUID"] = self._spec.id
        document["Name"], document["Product"], document["Vendor"] = "Redfish Service", "Lab BMC", "Lab"
        # As iLO 5 has it: one level.
        expand = {"ExpandAll": False, "Levels": True, "Links": False, "MaxLevels": 1, "NoLinks": True}
        document["ProtocolFeaturesSupported"] = {"ExpandQuery": expand}
        document["SessionService"] = {"@odata.id": sessions.ROOT}
        document["Links"] = {"Sessions": {"@odata.id": sessions.COLLECTION}}

    def _amend_system(self, document: Json) -> None:
        server = self._server
        power = "on" if document["PowerState"] == "On" else "off"
        document["Manufacturer"], document["Model"] = "Lab", "rack1"
        self._inventory.amend_system(document)
        document["SystemType"] = "Physical"
        document["PowerRestorePolicy"] = "LastState"
        document["Boot"] = self._boot()
        document["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = list(RESETS)
        document["BootProgress"] = {"LastState": server.progress(power)}
        if server.settings.reset_at:
            document["LastResetTime"] = self._now(server.settings.reset_at)
            document["BootProgress"]["LastStateTime"] = self._now(server.settings.reset_at)
        document["@odata.etag"] = self._etag()

    def _boot(self) -> Json:
        settings = self._server.settings
        return {
            "BootSourceOverrideEnabled": settings.override.enabled,
            "BootSourceOverrideTarget": settings.override.target,
            "BootSourceOverrideTarget@Redfish.AllowableValues": list(TARGETS),
            "BootSourceOverrideMode": settings.mode,
            "HttpBootUri": settings.override.uri,
        }

    def _etag(self) -> str:
        """The entity tag of the writable fields, so that a change of the power state does not invalidate a writer's
        tag."""
        text = json.dumps(self._boot(), sort_keys=True)
        return f'W/"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'

    def _amend_manager(self, document: Json) -> None:
        document["DateTime"] = self._now(time.time())
        document["DateTimeLocalOffset"] = "+00:00"
        document["Manufacturer"], document["Model"] = "Lab", "BMC"
        document["FirmwareVersion"] = self._server.settings.work.versions[BMC]
        document["Description"] = f"BMC of {self._server.identity.name}"
        target = f"/redfish/v1/Managers/{self._spec.id}/Actions/Manager.Reset"
        values = ["GracefulRestart", "ForceRestart"]
        document["Actions"] = {"#Manager.Reset": {"target": target, "ResetType@Redfish.AllowableValues": values}}
        self._dell.amend_manager(document)

    def _amend_chassis(self, document: Json) -> None:
        document["SerialNumber"], document["Manufacturer"] = self._server.identity.serial, "Lab"
        document["Model"], document["ChassisType"] = "rack1", "RackMount"
        self._inventory.amend_chassis(document)

    def _amend_secure_boot(self, document: Json) -> None:
        document["SecureBootCurrentBoot"] = "Enabled" if self._server.settings.secure_boot_now else "Disabled"

    def _amend_drive(self, document: Json) -> None:
        self._inventory.amend_drive(document)
        self._storage.amend_drive(document)

    def _now(self, seconds: float) -> str:
        """A moment by the BMC's clock."""
        clock = self._server.faults.find("clock")
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
        moment += datetime.timedelta(days=clock.days if clock else 0)
        return moment.strftime("%Y-%m-%dT%H:%M:%S+00:00")

    # -------------------------------------------------------------------------------------------- what is ours alone

    def _patch_system(self, request: Request) -> Response:
        document: Json | None = request.get_json(silent=True)
        if not isinstance(document, dict):
            return error(400, "Base.1.0.MalformedJSON", "the body is not a JSON object")
        wanted = request.headers.get("If-Match")
        if wanted not in (None, "*", self._etag(), self._etag().removeprefix("W/")):
            return error(412, "Base.1.0.PreconditionFailed", "the system changed since it was read")
        boot = document.pop("Boot", None)
        try:
            if boot:
                self._loop.call(self._set_boot(boot))
        except Refused as refusal:
            return error(400, "Base.1.0.PropertyValueNotInList", str(refusal))
        if not document and boot:
            return Response(status=204)
        body = json.dumps(document).encode()
        inner = Request.from_values(
            path=request.path, method="PATCH", data=body, content_type="application/json", base_url=request.host_url
        )
        return Response.from_app(self._application, inner.environ, buffered=True)

    async def _set_boot(self, boot: Json) -> None:
        known = ("Enabled", "Target", "Mode")
        unknown = boot.keys() - {*(f"BootSourceOverride{name}" for name in known), "HttpBootUri"}
        if unknown:
            raise Refused(f"Boot has no writable {', '.join(sorted(unknown))}")
        now = self._server.settings.override
        enabled, target, mode = (boot.get(f"BootSourceOverride{name}") for name in known)
        if mode is not None:
            self._server.set_mode(mode)
        if enabled is None and target is not None and now.enabled == "Disabled":
            enabled = "Once"
        changes = {"enabled": enabled, "target": target, "uri": boot.get("HttpBootUri")}
        changes = {key: value for key, value in changes.items() if value is not None}
        if changes:
            self._server.set_override(replace(Override() if target else now, **{"enabled": now.enabled, **changes}))

    def _in_loop(self, change: Callable[[], Any]) -> Any:
        async def changed() -> Any:
            return change()

        return self._loop.call(changed())

    def _restart(self, request: Request) -> Response:
        self.restart()
        return Response(status=204)

    def _log_in(self, request: Request) -> Response:
        document: Any = request.get_json(silent=True)
        if not isinstance(document, dict):
            return error(400, "Base.1.0.MalformedJSON", "the body is not a JSON object")
        made = self.sessions.log_in(document.get("UserName"), document.get("Password"))
        if made is None:
            return error(401, "Base.1.0.ResourceAtUriUnauthorized", "wrong user name or password")
        session, token = made
        place = f"{sessions.COLLECTION}/{session}"
        user = {"@odata.id": place, "@odata.type": "#Session.v1_1_0.Session", "Id": session, "Name": "Session"}
        answer = to_json({**user, "UserName": document["UserName"]})
        answer.status_code = 201
        answer.headers["X-Auth-Token"], answer.headers["Location"] = token, place
        return answer

    def _session_service(self, request: Request) -> Response:
        about = {"@odata.type": "#SessionService.v1_0_2.SessionService", "Id": "SessionService", "Name": "Sessions"}
        links = {"@odata.id": sessions.ROOT, "Sessions": {"@odata.id": sessions.COLLECTION}}
        return to_json({**about, **links, "ServiceEnabled": True, "SessionTimeout": 1800})

    def _list_sessions(self, request: Request) -> Response:
        return collection("Session", sessions.COLLECTION, list(self.sessions.tokens))
