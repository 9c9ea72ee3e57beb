"""A Metal API on loopback, just enough for the driver. What it does not know it answers with 501."""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from werkzeug.wrappers import Request, Response

from tests import serving

Json = dict[str, Any]
_ACTIONABLE = ("active", "inactive")
Fault = tuple[int, Json, dict[str, str]]


@dataclass
class FakeMetal:
    """Devices, and faults to answer with before anything else. `faults` maps a method to what is answered, in order."""

    devices: dict[str, Json] = field(default_factory=dict[str, Json])
    events: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    requests: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    bodies: list[Json] = field(default_factory=list[Json])
    faults: dict[str, list[Fault | str]] = field(default_factory=dict[str, list[Fault | str]])
    states: list[str] = field(default_factory=lambda: ["queued", "provisioning", "active"])
    """The states a new device walks through, one per GET."""
    spot: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Spot market requests, and the devices that they have."""
    reserved: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    """Hardware reservations as they are shown, one after the other; the last for ever."""
    told: list[Json] = field(default_factory=list[Json])
    """The events of every device that has none of its own."""
    stays: bool = False
    """Whether deleted devices stay for ever."""
    url: str = ""

    def count(self, method: str) -> int:
        return sum(1 for seen, _ in self.requests if seen == method)

    def add(self, hostname: str, tags: list[str], state: str = "active") -> str:
        device_id = str(uuid.uuid4())
        self.devices[device_id] = {"id": device_id, "hostname": hostname, "tags": tags, "state": state, "walk": []}
        return device_id

    def __call__(self, environ: Any, start: Any) -> Iterable[bytes]:
        request = Request(environ)
        body = request.get_json(silent=True) or {}
        self.requests.append((request.method, request.path))
        waiting = self.faults.get(request.method) or []
        fault = waiting.pop(0) if waiting else None
        found = fault if isinstance(fault, tuple) else self._route(request, body)
        if fault == "lose the answer":
            environ["werkzeug.socket"].shutdown(2)
        status, document, headers = found
        content = "" if status == 204 else json.dumps(document)
        return Response(content, status, headers, content_type="application/json")(environ, start)

    def _route(self, request: Request, body: Json) -> Fault:
        match (request.method, request.path.strip("/").split("/")):
            case ("POST", ["projects", _, "devices"]):
                self.bodies.append(body)
                device_id = self.add(body["hostname"], body["tags"], self.states[0])
                self.devices[device_id]["walk"] = self.states[1:]
                return 201, self._document(device_id), {}
            case ("GET", ["projects", _, "devices"]):
                tag = request.args.get("tag")
                found = [self._document(d) for d, device in self.devices.items() if not tag or tag in device["tags"]]
                return 200, {"devices": found, "meta": {"last_page": 1}}, {}
            case ("GET", ["devices", device_id]) if device_id in self.devices:
                device = self.devices[device_id]
                if device["state"] == "deprovisioning" and not self.stays:
                    del self.devices[device_id]
                    return 200, {"id": device_id, "hostname": device["hostname"], "state": "deprovisioning"}, {}
                if device["walk"]:
                    device["state"] = device["walk"].pop(0)
                return 200, self._document(device_id), {}
            case ("DELETE", ["devices", device_id]) if device_id in self.devices:
                self.devices[device_id]["state"] = "deprovisioning"
                return 204, {}, {}
            case ("PUT", ["devices", device_id]) if device_id in self.devices:
                self.devices[device_id] |= body
                return 200, self._document(device_id), {}
            case ("POST", ["devices", device_id, "actions"]) if self.devices[device_id]["state"] in _ACTIONABLE:
                self.bodies.append(body)
                if body["type"] == "reinstall":
                    self.devices[device_id] |= {"state": "reinstalling", "walk": ["reinstalling"] * 4 + ["active"]}
                    event = {"id": str(uuid.uuid4()), "type": "instance.reinstalling", "body": "is being reinstalled"}
                    self.events.setdefault(device_id, []).insert(0, event)
                return 202, {}, {}
            case ("POST", ["devices", device_id, "actions"]):
                return 422, {"errors": [f"Device is {self.devices[device_id]['state']}"]}, {}
            case ("GET", ["devices", device_id, "events"]) if device_id in self.devices:
                return 200, {"events": self.events.get(device_id, self.told)}, {}
            case ("GET", ["spot-market-requests", spot]) if spot in self.spot:
                devices = [{"href": f"/metal/v1/devices/{device}"} for device in self.spot[spot]]
                return 200, {"id": spot, "devices": devices}, {}
            case ("DELETE", ["spot-market-requests", spot]) if spot in self.spot:
                assert request.args["force_termination"] == "true"
                for device in self.spot.pop(spot):
                    self.devices[device]["state"] = "deprovisioning"
                return 204, {}, {}
            case ("GET", ["hardware-reservations", reservation]) if reservation in self.reserved:
                shown = self.reserved[reservation]
                return 200, {"id": reservation, **(shown.pop(0) if len(shown) > 1 else shown[0])}, {}
            case (_, ["devices" | "spot-market-requests" | "hardware-reservations", *_]):
                return 404, {"errors": ["Not found"]}, {}
            case _:
                return 501, {"errors": [f"{request.method} {request.path} is not implemented"]}, {}

    def _document(self, device_id: str) -> Json:
        device = {key: value for key, value in self.devices[device_id].items() if key != "walk"}
        addresses: list[Json] = []
        if device["state"] not in ("queued",):
            addresses = [
                {"address": "198.51.100.1", "address_family": 4, "public": True, "management": True},
                {"address": "203.0.113.1", "address_family": 4, "public": False, "management": True},
            ]
        ports = [{"name": "eth0", "id": f"{device_id}-eth0"}, {"name": "bond0", "id": f"{device_id}-bond0"}]
        shown = {"ip_addresses": addresses, "network_ports": ports, "sos": "sos.lab1.platformequinix.com"}
        return {**device, **shown}


@contextmanager
def running() -> Generator[FakeMetal, None, None]:
    """A server in a thread."""
    metal = FakeMetal()
    with serving.application(metal) as port:
        metal.url = f"http://127.0.0.1:{port}"
        yield metal
