"""As much of the Metal API as the driver's recovery talks to, over real HTTP; what it was not told to answer is 501."""

from __future__ import annotations

import json
import threading
import uuid
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

PROJECT = "11111111-2222-3333-4444-555555555555"
TOKEN = "token-of-the-tests"


class MetalServer:
    """The API's state and its server."""

    def __init__(self) -> None:
        self.devices: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, dict[str, Any]] = {}
        self.projects: dict[str, dict[str, Any]] = {}
        self.addresses: dict[str, dict[str, Any]] = {}
        self.sessions: dict[str, dict[str, Any]] = {}
        self.requests: dict[str, list[str]] = {}
        """Spot market requests, and the devices that they have got."""
        self.deleted: list[str] = []
        self.refusals: list[int] = []
        """Statuses that the next requests get, before anything is done."""
        self.stuck: set[str] = set()
        """Ids of what is not deleted, whoever asks."""
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def do_POST(self) -> None:
                outer.answer(self)

            def do_DELETE(self) -> None:
                outer.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> MetalServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add(self, hostname: str, *tags: str, created: datetime | None = None) -> str:
        id = str(uuid.uuid4())
        when = (created or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.devices[id] = {"id": id, "hostname": hostname, "tags": list(tags), "state": "active", "created_at": when}
        return id

    def add_key(self, label: str) -> str:
        id = str(uuid.uuid4())
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.keys[id] = {"id": id, "label": label, "created_at": now}
        return id

    def add_session(self, device: str) -> str:
        id = str(uuid.uuid4())
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        link = {"href": f"/metal/v1/devices/{device}"}
        self.sessions[id] = {"id": id, "address_family": "ipv4", "device": link, "created_at": now}
        return id

    def add_project(self, name: str, created: datetime | None = None) -> str:
        id = str(uuid.uuid4())
        when = (created or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.projects[id] = {"id": id, "name": name, "created_at": when}
        return id

    def add_address(self, network: str, *tags: str, management: bool = False) -> str:
        id = str(uuid.uuid4())
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        block = {"id": id, "network": network, "tags": list(tags), "type": "public_ipv4", "created_at": now}
        self.addresses[id] = {**block, "management": management}
        return id

    def hostnames(self) -> list[str]:
        with self.lock:
            return sorted(device["hostname"] for device in self.devices.values())

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(length)) if length else {}
        with self.lock:
            if request.headers.get("X-Auth-Token") != TOKEN:
                status, answer = 401, {"errors": ["Invalid authentication token"]}
            elif self.refusals:
                status, answer = self.refusals.pop(0), {"errors": ["told to"]}
            else:
                status, answer = self.respond(request.command, request.path.partition("?")[0], body)
        text = b"" if answer is None else json.dumps(answer).encode()
        request.send_response(status)
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    def respond(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any] | None]:
        meta = {"current_page": 1, "last_page": 1}
        match (method, path.strip("/").split("/")):
            case ("GET", ["projects", project, "devices"]) if project == PROJECT:
                return 200, {"devices": list(self.devices.values()), "meta": meta}
            case ("GET", ["projects", project, "ssh-keys"]) if project == PROJECT or project in self.projects:
                return 200, {"ssh_keys": list(self.keys.values()), "meta": meta}
            case ("GET", ["projects", project, "spot-market-requests"]):
                listed = [
                    {"id": id, "devices": [{"href": f"/metal/v1/devices/{device}"} for device in devices]}
                    for id, devices in self.requests.items()
                ]
                return 200, {"spot_market_requests": listed, "meta": meta}
            case ("GET", ["projects", project, "virtual-networks" | "metal-gateways" as what]):
                return 200, {what.replace("-", "_"): [], "meta": meta}
            case ("GET", ["projects", project, "api-keys"]):
                return 200, {"api_keys": [], "meta": meta}
            case ("GET", ["projects", project, "bgp", "sessions"]):
                return 200, {"bgp_sessions": list(self.sessions.values()), "meta": meta}
            case ("DELETE", ["bgp", "sessions", id]) if id in self.sessions:
                del self.sessions[id]
                self.deleted.append(id)
                return 204, None
            case ("GET", ["projects"]):
                return 200, {"projects": list(self.projects.values()), "meta": meta}
            case ("GET", ["projects", project, "devices"]) if project in self.projects:
                return 200, {"devices": self.projects[project].get("devices") or [], "meta": meta}
            case ("DELETE", ["projects", project]) if project in self.projects:
                del self.projects[project]
                self.deleted.append(project)
                return 204, None
            case ("GET", ["projects", project, "ips"]) if project == PROJECT or project in self.projects:
                return 200, {"ip_addresses": list(self.addresses.values()), "meta": meta}
            case ("DELETE", ["ips", id]) if id in self.addresses:
                del self.addresses[id]
                self.deleted.append(id)
                return 204, None
            case ("POST", ["projects", project, "devices"]) if project == PROJECT:
                id = self.add(body["hostname"], *body["tags"])
                return 201, self.devices[id]
            case ("GET", ["devices", id]):
                return (200, self.devices[id]) if id in self.devices else (404, {"errors": ["Not found"]})
            case ("DELETE", [_, id]) if id in self.stuck:
                return 422, {"errors": ["told to stay"]}
            case ("DELETE", ["devices", id]):
                if id not in self.devices:
                    return 404, {"errors": ["Not found"]}
                del self.devices[id]
                self.deleted.append(id)
                return 204, None
            case ("DELETE", ["ssh-keys", id]):
                if self.keys.pop(id, None) is None:
                    return 404, {"errors": ["Not found"]}
                self.deleted.append(id)
                return 204, None
            case _:
                return 501, {"errors": [f"the test's Metal API has no {method} {path}"]}
