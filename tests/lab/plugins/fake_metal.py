"""A Metal API on loopback that knows only what a test told it, and answers everything else with 501.

Deliberately not the lab's emulator: the plug-in's behaviour must be testable without it, down to broken sockets.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROJECT = "11111111-1111-4111-8111-111111111111"
ORGANIZATION = "22222222-2222-4222-8222-222222222222"
BASE = "/metal/v1"
Json = dict[str, Any]


@dataclass
class Fault:
    """What happens to the next requests of a kind."""

    method: str
    suffix: str
    kind: str
    """`status`, `reset`, `half`; with `after` the request is carried out first."""
    status: int = 503
    headers: dict[str, str] = field(default_factory=dict[str, str])
    after: bool = False
    count: int = 1


class FakeMetal:
    """Devices, projects and keys of one account."""

    def __init__(self) -> None:
        self.devices: dict[str, Json] = {}
        self.projects: dict[str, Json] = {}
        self.keys: dict[str, Json] = {}
        self.ips: dict[str, Json] = {}
        self.sessions: dict[str, Json] = {}
        self.block_state = "created"
        self.requests: list[tuple[str, str, Any]] = []
        self.tokens: set[str | None] = set()
        self.unexpected: list[str] = []
        self.faults: list[Fault] = []
        self.polls_until_active = 2
        self.final_state = "active"
        self.listed_settle = False
        """Whether devices get on when their list is read, too."""
        self.events: list[str] = []
        self.now = "2030-01-02T03:04:05Z"
        self.clock = "Wed, 02 Jan 2030 03:04:05 GMT"
        self.lock = threading.RLock()

    def count(self, method: str, suffix: str) -> int:
        """How many requests of a kind came."""
        return sum(1 for verb, path, _ in self.requests if verb == method and path.endswith(suffix))

    def add_device(self, **values: Any) -> Json:
        """A device as the API would show it."""
        identifier = str(uuid.uuid4())

        def address(text: str, family: int, *, public: bool) -> Json:
            return {
                "address": text,
                "gateway": "198.51.100.0",
                "cidr": 31,
                "public": public,
                "management": True,
                "address_family": family,
            }

        device: Json = {
            "id": identifier,
            "hostname": "generated",
            "state": "queued",
            "polls": 0,
            "tags": [],
            "created_at": self.now,
            "updated_at": self.now,
            "locked": False,
            "billing_cycle": "hourly",
            "operating_system": {"slug": "custom_ipxe"},
            "plan": {"slug": "c3.small.x86"},
            "facility": {"id": "f", "code": "lab1"},
            "metro": {"id": "m", "code": "lb"},
            "project": {"id": PROJECT},
            "root_password": "hunter2-root",
            "ssh_keys": [{"id": "k", "href": f"{BASE}/ssh-keys/aaaa"}],
            "ip_addresses": [
                address("203.0.113.1", 4, public=False),
                address("2001:db8::1", 6, public=True),
                address("198.51.100.1", 4, public=True),
            ],
            "network_ports": [
                {"id": "b", "name": "bond0", "type": "NetworkBondPort", "data": {"bonded": True, "mac": None}},
                {
                    "id": "e",
                    "name": "eth0",
                    "type": "NetworkPort",
                    "data": {"bonded": True, "mac": "52:54:00:00:00:01"},
                },
            ],
            **values,
        }
        self.devices[identifier] = device
        return device

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """The rules; what they do not know is 501 and fails the test."""
        parts = path.removeprefix(BASE).strip("/").split("/")
        with self.lock:
            match method, parts:
                case "POST", ["projects", project, "devices"] if project == PROJECT:
                    wanted = {name: body[name] for name in ("hostname", "tags", "ipxe_script_url") if name in body}
                    return 201, self.add_device(**wanted)
                case _, ["projects", _, "ips"] | ["ips", _] | ["bgp", "sessions", _]:
                    return self._network(method, parts, body)
                case "GET", ["projects", _, "devices"]:
                    for device in self.devices.values() if self.listed_settle else []:
                        self._look_at(device)
                    return 200, {"devices": list(self.devices.values()), "meta": {"total": len(self.devices)}}
                case _, ["devices", identifier, *rest] if identifier in self.devices:
                    return self._device(method, identifier, rest, body)
                case _, ["projects"] | ["projects", _] | ["projects", _, "bgp-config" | "bgp-configs"]:
                    return self._project(method, parts, body)
                case "POST", ["projects", owner, "ssh-keys"]:
                    return 201, self._key(body, f"{BASE}/projects/{owner}")
                case "GET", ["projects", _, "ssh-keys"]:
                    return 200, {"ssh_keys": list(self.keys.values())}
                case "GET", ["ssh-keys", identifier] if identifier in self.keys:
                    return 200, self.keys[identifier]
                case "PATCH", ["ssh-keys", identifier] if identifier in self.keys:
                    self.keys[identifier].update(body)
                    return 200, self.keys[identifier]
                case "DELETE", ["ssh-keys", identifier] if identifier in self.keys:
                    del self.keys[identifier]
                    return 204, None
                case _, ["devices" | "ssh-keys" | "ips" | "bgp", *_]:
                    return 404, {"errors": ["Not found"]}
                case _:
                    self.unexpected.append(f"{method} {path}")
                    return 501, {"errors": ["not told"]}

    def _device(self, method: str, identifier: str, rest: list[str], body: Any) -> tuple[int, Any]:
        device = self.devices[identifier]
        match method, rest:
            case "GET", []:
                self._look_at(device)
                return 200, device
            case _, ["bgp", "sessions"]:
                return self._network(method, ["devices", identifier, *rest], body)
            case "GET", ["events"]:
                return 200, {"events": [{"type": "provisioning", "body": text} for text in self.events]}
            case "PUT", []:
                device.update(body)
                return 200, device
            case "DELETE", []:
                del self.devices[identifier]
                return 204, None
            case "POST", ["actions"] if body.get("type") == "reinstall":
                device.update(polls=0, state="reinstalling")
                return 202, None
            case _:
                self.unexpected.append(f"{method} {rest}")
                return 501, {"errors": ["not told"]}

    def _look_at(self, device: Json) -> None:
        device["polls"] += 1
        settled = device["polls"] > self.polls_until_active
        device["state"] = self.final_state if settled else "provisioning"

    def _project(self, method: str, parts: list[str], body: Any) -> tuple[int, Any]:
        match method, parts:
            case "POST", ["projects"]:
                identifier = str(uuid.uuid4())
                self.projects[identifier] = {
                    "id": identifier,
                    "name": body["name"],
                    "created_at": self.now,
                    "updated_at": self.now,
                    "organization": {"href": f"{BASE}/organizations/{ORGANIZATION}"},
                }
                return 201, self.projects[identifier]
            case "GET", ["projects"]:
                return 200, {"projects": list(self.projects.values())}
            case _, ["projects", identifier, *rest] if identifier in self.projects:
                project = self.projects[identifier]
                if rest == ["bgp-configs"]:
                    project["bgp"] = {"id": "b", "status": "enabled", "max_prefix": 10, **body}
                    return 204, None
                if rest == ["bgp-config"]:
                    return 200, project.get("bgp", {})
                if method == "DELETE":
                    del self.projects[identifier]
                    return 204, None
                if method == "PATCH":
                    project.update(body)
                return 200, project
            case _:
                return 404, {"errors": ["Not found"]}

    def _network(self, method: str, parts: list[str], body: Any) -> tuple[int, Any]:
        """Addresses and BGP sessions; lists have what belongs to their owner."""
        match method, parts:
            case "POST", ["projects", owner, "ips"]:
                return 201, self.add_block(owner, body)
            case "POST", ["devices", owner, "bgp", "sessions"]:
                return 201, self.add_session(owner, body)
            case "GET", ["projects", owner, "ips"]:
                href = f"{BASE}/projects/{owner}"
                return 200, {"ip_addresses": [each for each in self.ips.values() if each["project"] == {"href": href}]}
            case "GET", ["devices", owner, "bgp", "sessions"]:
                found = [s for s in self.sessions.values() if s["device"]["href"].endswith(owner)]
                return 200, {"bgp_sessions": found}
            case _, [*_, identifier] if identifier in self.ips or identifier in self.sessions:
                records = self.ips if identifier in self.ips else self.sessions
                if method == "DELETE":
                    del records[identifier]
                    return 204, None
                if method == "GET":
                    return 200, records[identifier]
                self.unexpected.append(f"{method} {parts}")
                return 501, {"errors": ["not told"]}
            case _:
                return 404, {"errors": ["Not found"]}

    def add_block(self, project: str, body: Json) -> Json:
        """A block of addresses as the API would show it."""
        cidr = 33 - int(body["quantity"]).bit_length()
        facility = body.get("facility")
        return self._address(
            cidr,
            type=body["type"],
            state=self.block_state,
            management=False,
            metro={"code": "lb"},
            facility={"code": facility} if facility else None,
            project={"href": f"{BASE}/projects/{project}"},
            tags=body.get("tags") or [],
            details=body.get("details"),
        )

    def _address(self, cidr: int, **values: Any) -> Json:
        identifier = str(uuid.uuid4())
        self.ips[identifier] = {
            "id": identifier,
            "created_at": self.now,
            "address": "192.0.2.128",
            "network": "192.0.2.128",
            "netmask": {32: "255.255.255.255", 30: "255.255.255.252"}.get(cidr, "255.255.255.254"),
            "gateway": "192.0.2.128",
            "cidr": cidr,
            "address_family": 4,
            "public": True,
            "manageable": True,
            "global_ip": False,
            **values,
        }
        return self.ips[identifier]

    def add_session(self, device: str, body: Json) -> Json:
        """A BGP session as the API would show it."""
        identifier = str(uuid.uuid4())
        self.sessions[identifier] = {
            "id": identifier,
            "created_at": self.now,
            "device": {"href": f"{BASE}/devices/{device}"},
            "status": "unknown,unknown",
            **body,
        }
        return self.sessions[identifier]

    def _key(self, body: Json, owner: str) -> Json:
        identifier = str(uuid.uuid4())
        self.keys[identifier] = {
            "id": identifier,
            "label": body["label"],
            "key": body["key"],
            "fingerprint": "aa:bb",
            "created_at": self.now,
            "updated_at": self.now,
            "owner": {"href": owner},
        }
        return self.keys[identifier]

    def fault(self, method: str, path: str) -> Fault | None:
        """The misbehaviour to show now."""
        with self.lock:
            for fault in self.faults:
                if fault.count and fault.method == method and path.endswith(fault.suffix):
                    fault.count -= 1
                    return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    metal: FakeMetal

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        return self.metal.clock

    def _send(self, status: int, document: Any, headers: dict[str, str], *, half: bool = False) -> None:
        content = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json; charset=utf-8", "X-Request-Id": "r", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if half else content)
        if half:
            self._reset()

    def _reset(self) -> None:
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def _handle(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        path = self.path.partition("?")[0]
        self.metal.requests.append((self.command, path, body))
        self.metal.tokens.add(self.headers.get("X-Auth-Token"))
        fault = self.metal.fault(self.command, path)
        if fault is not None and not fault.after:
            return self._break(fault, None)
        status, document = self.metal.answer(self.command, path, body)
        if fault is not None:
            return self._break(fault, document)
        return self._send(status, document, {})

    def _break(self, fault: Fault, document: Any) -> None:
        if fault.kind == "reset":
            self._reset()
        elif fault.kind == "half":
            self._send(201, document, {}, half=True)
        else:
            self._send(fault.status, {"errors": ["told to fail"]}, fault.headers)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Broken sockets are what some tests are about; everything else shows in the answers."""


@contextmanager
def serve(metal: FakeMetal, tls: ssl.SSLContext | None = None) -> Generator[str, None, None]:
    """The address it answers at while the context lasts; afterwards nothing unexpected may have been asked."""
    handler = type("Handler", (_Handler,), {"metal": metal})
    server = _Server(("127.0.0.1", 0), handler)
    if tls is not None:
        # Hands are shaken in each connection's own thread: a client that is killed meanwhile must not keep others out.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}{BASE}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert not metal.unexpected, metal.unexpected
