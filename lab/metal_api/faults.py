"""Misbehaviour by request.

On the API's wire (`match`: `method`, `path`: both regular expressions, searched):
    status      answer `status` with `body` and `headers` (429 gets Retry-After: 1 unless given)
    delay       wait `seconds`, then go on
    reset       cut the connection without an answer
    hang        say nothing for `seconds`, then cut the connection
    half_body   answer, but cut the connection in the middle of the body
`when`: `before` (the request is not carried out) or `after` (it is, and its answer is lost).
`each`: strike every call once: what has the same method, path, query and body is the same call, made again.

On machines (`match`: `hostname`, regular expression, whole name). They are made in what machines are served, so
every back end shows them:
    never_boots     the iPXE script is not served: the device stays `provisioning`
    wrong_rootfs    coreos.live.rootfs_url points to the initramfs: the hash cannot match
    ignition_fails  userdata claims a spec version nobody knows
    no_ssh          userdata masks the SSH units
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, cast

from lab.metal_api.devices import Device
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.records import Json, Record, saved
from lab.metal_api.state import Account

WIRE = ("status", "delay", "reset", "half_body", "hang")
MACHINE = ("never_boots", "wrong_rootfs", "ignition_fails", "no_ssh")
_ROOTFS = re.compile(r"(coreos\.live\.rootfs_url=)(\S+)")
_INITRD = re.compile(r"^\s*initrd\s+(?:--name\s+\S+\s+)?(\S+)", re.MULTILINE)
_SSH_UNITS = ("ssh.service", "sshd.service", "ssh.socket", "sshd.socket")


@saved("faults")
@dataclass(kw_only=True)
class Fault(Record):
    """A misbehaviour somebody switched on. What the kinds mean is told in `faults`."""

    kind: str
    match: dict[str, str]
    count: int | None = 1
    """How often it still strikes; None for ever."""
    when: str = "before"
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: Any = None
    seconds: float = 1.0
    each: bool = False
    calls: list[str] = field(default_factory=list[str])
    """Where each call is struck once: those that were."""
    hits: int = 0


def add_fault(account: Account, body: Json) -> Fault:
    """Switch on what a control request asks for; refuses what would never strike."""
    known = {"kind", "match", "count", "when", "status", "headers", "body", "seconds", "each"}
    unknown = body.keys() - known
    if unknown:
        raise Unprocessable(f"unknown keys: {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
    kind = body.get("kind")
    if kind not in WIRE + MACHINE:
        raise Unprocessable(f"kind: {kind!r} is not one of {', '.join(WIRE + MACHINE)}")
    match = {str(key): str(value) for key, value in (body.get("match") or {}).items()}
    allowed = {"hostname"} if kind in MACHINE else {"method", "path"}
    if match.keys() - allowed:
        raise Unprocessable(f"match of a {kind} fault takes {', '.join(sorted(allowed))}")
    for key, pattern in match.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise Unprocessable(f"match.{key}: {error}") from None
    if body.get("when", "before") not in ("before", "after"):
        raise Unprocessable("when: before or after")
    options = {
        key: body[key] for key in ("count", "when", "status", "headers", "body", "seconds", "each") if key in body
    }
    if options.get("each"):
        if kind not in WIRE or "count" in options:
            raise Unprocessable("each: is for faults on the wire, and takes no count")
        options["count"] = None
    return account.make(Fault, kind=kind, match=match, **options)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request, as far as faults look at it."""

    method: str
    path: str
    query: bytes
    body: bytes

    @property
    def identity(self) -> str:
        """The same for a call that is made again."""
        digest = hashlib.sha256(b"\0".join((self.query, self.body))).hexdigest()[:12]
        return f"{self.method} {self.path} {digest}"


def on_request(account: Account, call: Call) -> Fault | None:
    """The first fault for this request, counted."""
    for fault in account.table(Fault).values():
        fits = re.search(fault.match.get("path", ""), call.path)
        fits = fits and re.search(fault.match.get("method", ""), call.method)
        if fault.kind not in WIRE or not fits or fault.count == 0:
            continue
        if fault.each and call.identity in fault.calls:
            continue
        if fault.each:
            fault.calls.append(call.identity)
        return _struck(account, fault)
    return None


def on_machine(account: Account, kind: str, device: Device) -> bool:
    """Whether this machine is to misbehave now."""
    for fault in account.table(Fault).values():
        fits = re.fullmatch(fault.match.get("hostname", ".*"), device.hostname)
        if fault.kind == kind and fits and fault.count != 0:
            _struck(account, fault)
            return True
    return False


def _struck(account: Account, fault: Fault) -> Fault:
    fault.hits += 1
    if fault.count is not None:
        fault.count -= 1
    return fault


def with_wrong_rootfs(script: str) -> str:
    """The script with a root file system that is another file."""
    initrd = _INITRD.search(script)
    if initrd is None:
        return script
    return _ROOTFS.sub(lambda match: match.group(1) + initrd.group(1), script)


def with_broken_ignition(userdata: str) -> str:
    """The configuration with a version no Ignition supports."""
    document = _parsed(userdata)
    cast("Json", document.setdefault("ignition", {}))["version"] = "9.9.9"
    return json.dumps(document)


def without_ssh(userdata: str) -> str:
    """The configuration with the SSH units masked."""
    document = _parsed(userdata)
    units = cast("list[Any]", cast("Json", document.setdefault("systemd", {})).setdefault("units", []))
    units.extend({"name": name, "mask": True} for name in _SSH_UNITS)
    return json.dumps(document)


def _parsed(userdata: str) -> Json:
    """Userdata as JSON; what is not a JSON object becomes an empty one, which fails or lacks keys all the same."""
    try:
        document = json.loads(userdata)
    except ValueError:
        return {}
    return cast("Json", document) if isinstance(document, dict) else {}
