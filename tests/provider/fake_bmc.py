"""A BMC on loopback: sushy-tools' Redfish application over one emulated machine, behind TLS, sessions and faults.

sushy-tools has neither sessions nor one-time boots: both are added around it, as real BMCs have them.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import trustme
from sushy_tools import error
from sushy_tools.emulator import main as emulator
from sushy_tools.emulator.resources.vmedia import DeviceInfo
from werkzeug.wrappers import Request, Response

from metal_ipi.provider import backoff
from tests import serving

UUID = "27946b59-9e44-4fa7-8e91-f3527a1ef094"
MAC = "52:54:00:12:34:56"
USER, PASSWORD = "operator-of-racks", "a-password-nobody-may-see"
_SYSTEM = f"/redfish/v1/Systems/{UUID}"
Fault = Callable[["FakeBmc", Request], "Response | None"]


@dataclass
class Machine:
    """The server, and how its BMC behaves."""

    uuid: str = UUID
    power: str = "Off"
    boots: list[str] = field(default_factory=list[str])
    """What it booted from, in order."""
    resets: list[str] = field(default_factory=list[str])
    enabled: str = "Disabled"
    target: str = "None"
    mode: str = "UEFI"
    progress: str | None = None
    order: list[str] | None = None
    """BootOrder, if the BMC has one."""
    options: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """What there is to know of a boot option besides its name."""
    power_losses: int = 0
    """How often it loses its power at once when it is switched on."""
    lag: float = 0
    """Seconds until a new power state shows."""
    shuts_down: bool = True
    """Whether its operating system listens."""
    passes_over: bool = False
    """Whether one-time boots are ignored, and stay listed."""
    uses_up: bool = False
    """Whether one-time boots are ignored, and look as if they were not."""
    forgets: tuple[str, ...] = ()
    """Kinds of overrides that are taken and dropped."""
    refuses: tuple[str, ...] = ()
    """Kinds of overrides that are refused."""
    resets_offered: tuple[str, ...] | None = None
    targets_offered: tuple[str, ...] | None = None
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    """Members of the System."""
    image: str | None = None
    nics: list[str] = field(default_factory=lambda: [MAC])
    pending: tuple[float, str] | None = None

    def state(self) -> str:
        if self.pending and backoff.clock.now() >= self.pending[0]:
            self.power, self.pending = self.pending[1], None
        return self.power

    def reset(self, kind: str) -> None:
        self.resets.append(kind)
        if kind in ("On", "ForceOn", "ForceRestart", "PowerCycle"):
            self._show("On")
            self._boot()
            if self.power_losses:
                self.power_losses -= 1
                self.power = "Off"
        elif kind == "ForceOff" or (kind == "GracefulShutdown" and self.shuts_down):
            self._show("Off")

    def _show(self, power: str) -> None:
        if self.pending is None or self.pending[1] != power:
            self.pending = (backoff.clock.now() + self.lag, power)
        self.state()

    def _boot(self) -> None:
        if self.progress:
            self.progress = "OSRunning"
        if self.enabled == "Once" and self.passes_over:
            self.boots.append("Hdd")
            return
        usual = (self.order or ["Hdd"])[0]
        taken = self.enabled == "Continuous" or (self.enabled == "Once" and not self.uses_up)
        self.boots.append(self.target if taken else usual)
        if self.enabled == "Once":
            self.enabled, self.target = "Disabled", "None"


class _Driver:
    """A seam of sushy-tools' (AbstractSystemsDriver, StaticDriver of virtual media); others' functions are refused."""

    def __init__(self, bmc: FakeBmc, **functions: Callable[..., Any]) -> None:
        self._bmc = bmc
        self.driver, self.devices = "<fake machine>", ("Cd",)
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        def missing(*_: Any, **__: Any) -> None:
            raise error.NotSupportedError(f"{name} is not emulated")

        return missing

    @property
    def systems(self) -> list[str]:
        return self._bmc.systems

    def uuid(self, identity: str) -> str:
        if identity not in self.systems:
            raise error.NotFound(f"System {identity} was not found")
        return self._bmc.machine.uuid


def _systems(bmc: FakeBmc) -> _Driver:
    """The machine."""
    machine, disks = bmc.machine, [{"Name": "vda", "CapacityBytes": 64 << 30}]
    return _Driver(
        bmc,
        name=lambda _: "server",
        get_power_state=lambda _: machine.state(),
        set_power_state=lambda _, kind: machine.reset(kind),
        get_boot_device=lambda _: machine.target,
        get_boot_mode=lambda _: machine.mode,
        set_boot_image=lambda *_, **__: None,
        get_total_memory=lambda _: 16,
        get_nics=lambda _: [{"id": mac, "mac": mac} for mac in machine.nics],
        get_simple_storage_collection=lambda _: {
            "virtio": {"Id": "virtio", "Name": "virtio", "DeviceList": disks},
        },
    )


def _media(bmc: FakeBmc) -> _Driver:
    """Virtual media that takes any URL, and fetches nothing."""

    def shown(*_: Any) -> DeviceInfo:
        image = bmc.machine.image
        return DeviceInfo(image or "", image or "", image is not None, True, "", "", False)

    return _Driver(
        bmc,
        get_device_name=lambda _, device: device,
        get_device_media_types=lambda *_: ["CD", "DVD"],
        get_device_image_info=shown,
        insert_image=lambda identity, device, image, *_, **__: setattr(bmc.machine, "image", image) or image,
        eject_image=lambda *_: setattr(bmc.machine, "image", None),
    )


@dataclass
class FakeBmc:
    """What answers, and what was asked."""

    machine: Machine = field(default_factory=Machine)
    systems: list[str] = field(default_factory=lambda: [UUID])
    password: str = PASSWORD
    sessions: dict[str, str] = field(default_factory=dict[str, str])
    has_sessions: bool = True
    requests: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Of PATCH requests."""
    faults: list[Fault] = field(default_factory=list[Fault])
    """Each is asked once, in order; one that answers None is left for a later request."""
    documents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Further resources by path, in the place of sushy-tools' own."""
    date: str | None = None
    """What its clock shows; not given: the time."""
    address: str = ""
    ca: str = ""
    certificate: bytes = b""
    """DER."""

    def count(self, method: str, end: str = "") -> int:
        return sum(1 for seen, path in self.requests if seen == method and path.endswith(end))

    def settings(self, **more: Any) -> dict[str, Any]:
        """One entry of the section `bmcs`."""
        return {"address": self.address, "username": USER, "password": PASSWORD, "ca": self.ca, **more}

    def __call__(self, environment: Any, start: Any) -> Iterable[bytes]:
        request = Request(environment)
        self.requests.append((request.method, request.path))
        self.headers.append(dict(request.headers))
        for fault in self.faults:
            answer = fault(self, request)
            if answer is not None:
                self.faults.remove(fault)
                return answer(environment, start)
        return self.answer(request)(environment, start)

    def answer(self, request: Request) -> Response:
        path = request.path.rstrip("/")
        if path.endswith("/SessionService/Sessions") and request.method == "POST":
            return self._log_in(request.get_json())
        if path != "/redfish/v1" and not self._known(request):
            return _refusal(401, "you are nobody here")
        if "/SessionService/Sessions/" in path and request.method == "DELETE":
            self.sessions.pop(path.rpartition("/")[2], None)
            return Response(status=204)
        if path == _SYSTEM and request.method == "PATCH":
            return self._patch(request.get_json())
        if path in self.documents:
            return _json(self.documents[path])
        if "/BootOptions" in path:
            return self._boot_option(path.rpartition("/")[2])
        answer = Response.from_app(emulator.app, request.environ)
        return self._as_told(answer) if path == _SYSTEM and request.method == "GET" else answer

    def _log_in(self, body: dict[str, str]) -> Response:
        if not self.has_sessions:
            return _refusal(404, "no such thing")
        if (body["UserName"], body["Password"]) != (USER, self.password):
            return _refusal(401, f"user {body['UserName']} with password {body['Password']} is not known")
        name = f"s{len(self.sessions) + 1}"
        self.sessions[name] = f"token-{name}-{time.monotonic_ns()}"
        location = f"/redfish/v1/SessionService/Sessions/{name}"
        return Response("{}", 201, {"X-Auth-Token": self.sessions[name], "Location": location})

    def _known(self, request: Request) -> bool:
        if token := request.headers.get("X-Auth-Token"):
            return token in self.sessions.values()
        expected = base64.b64encode(f"{USER}:{self.password}".encode()).decode()
        return request.headers.get("Authorization") == f"Basic {expected}"

    def _patch(self, body: dict[str, Any]) -> Response:
        self.bodies.append(body)
        boot, machine = body["Boot"], self.machine
        if "BootOrder" in boot:
            if machine.order is None:
                return _refusal(400, "BootOrder cannot be set")
            machine.order = list(boot["BootOrder"])
            return Response(status=204)
        kind = boot.get("BootSourceOverrideEnabled", machine.enabled)
        if kind in machine.refuses:
            return _refusal(400, f"{kind} is not in the list of acceptable values")
        if kind not in machine.forgets:
            machine.enabled = kind
            machine.target = boot.get("BootSourceOverrideTarget", machine.target)
            machine.mode = boot.get("BootSourceOverrideMode", machine.mode)
        return Response(status=204)

    def _boot_option(self, name: str) -> Response:
        link = f"{_SYSTEM}/BootOptions"
        if name == "BootOptions":
            return _json({"Members": [{"@odata.id": f"{link}/{option}"} for option in self.machine.order or ()]})
        return _json({"BootOptionReference": name, "Alias": name, **self.machine.options.get(name, {})})

    def _as_told(self, answer: Response) -> Response:
        if answer.status_code != 200:
            return answer
        document, machine = json.loads(answer.get_data()), self.machine
        boot = document["Boot"]
        boot |= {"BootSourceOverrideEnabled": machine.enabled, "BootSourceOverrideTarget": machine.target}
        if machine.targets_offered is not None:
            boot["BootSourceOverrideTarget@Redfish.AllowableValues"] = list(machine.targets_offered)
        if machine.resets_offered is not None:
            reset = document["Actions"]["#ComputerSystem.Reset"]
            reset["ResetType@Redfish.AllowableValues"] = list(machine.resets_offered)
        if machine.order is not None:
            boot |= {"BootOrder": machine.order, "BootOptions": {"@odata.id": f"{_SYSTEM}/BootOptions"}}
        if machine.progress:
            document["BootProgress"] = {"LastState": machine.progress}
        return _json({**document, **machine.extra})


def _json(document: Any, status: int = 200) -> Response:
    return Response(json.dumps(document), status, content_type="application/json")


def _refusal(status: int, words: str) -> Response:
    return _json({"error": {"code": "Base.1.0.GeneralError", "message": words}}, status)


def once(method: str, end: str, status: int, headers: dict[str, str] | None = None, words: str = "not now") -> Fault:
    """A fault: answers one request with a status."""

    def fault(_: FakeBmc, request: Request) -> Response | None:
        if not _is(request, method, end):
            return None
        answer = _refusal(status, words)
        answer.headers.extend(headers or {})
        return answer

    return fault


def moved(end: str, location: str) -> Fault:
    """A fault: sends one request elsewhere."""
    return lambda _, request: (
        Response(status=308, headers={"Location": location}) if request.path.endswith(end) else None
    )


def answers(end: str, document: Any, status: int = 200) -> Fault:
    """A fault: one GET is answered with a document."""
    return lambda _, request: _json(document, status) if _is(request, "GET", end) else None


def lost(method: str, end: str, *, before: bool) -> Fault:
    """A fault: the connection breaks, before the request was worked on, or after."""

    def fault(bmc: FakeBmc, request: Request) -> Response | None:
        if not _is(request, method, end):
            return None
        if not before:
            bmc.answer(request)
        request.environ["werkzeug.socket"].shutdown(2)
        return Response(status=500)

    return fault


def _is(request: Request, method: str, end: str) -> bool:
    return request.method == method and request.path.rstrip("/").endswith(end)


@contextmanager
def running(
    authority: trustme.CA | None = None, names: tuple[str, ...] = ("127.0.0.1",), **certificate: Any
) -> Generator[FakeBmc, None, None]:
    """A BMC in a thread, with a certificate for the names."""
    authority = authority or trustme.CA()
    issued = authority.issue_cert(*names, **certificate)
    bmc = FakeBmc(ca=authority.cert_pem.bytes().decode())
    bmc.certificate = ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issued.configure_cert(context)

    class Handler(serving.Quiet):
        def date_time_string(self, timestamp: float | None = None) -> str:
            return bmc.date or super().date_time_string()

    with serving.application(bmc, Handler, context) as port, _emulating(bmc):
        bmc.address = f"https://127.0.0.1:{port}"
        yield bmc


@contextmanager
def _emulating(bmc: FakeBmc) -> Generator[None, None, None]:
    """Gives sushy-tools' one application our machine. So there can be one BMC at a time."""
    kind: Any = emulator.Application
    systems, media = kind.systems, kind.vmedia
    driver, drives = _systems(bmc), _media(bmc)
    kind.systems = property(lambda _: driver)
    kind.vmedia = property(lambda _: drives)
    emulator.app.__dict__.pop("_cache", None)
    try:
        yield
    finally:
        kind.systems, kind.vmedia = systems, media
        emulator.app.__dict__.pop("_cache", None)
