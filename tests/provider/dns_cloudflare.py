"""A small Cloudflare: the calls of its API v4 that zones and DNS records take, with their documented answers.

Sources: developers.cloudflare.com/api, «List Zones», «Zone Details», «List, Create, Update, Delete DNS Record»; error
codes 10000 and 9109 (credentials), 81058 (identical record), 81053 (alias), 81044 (no such record), 1004 (validation),
10013 and 971 (throttling). What is not listed here is answered with 501 and fails the test.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from werkzeug.wrappers import Request, Response

from tests import serving

TOKEN = "a-token-nobody-may-see"
ZONE_ID = "023e105f4ecef8ad9ca31a8372d0c353"
_PREFIX = "/client/v4"
_KINDS = ("A", "AAAA", "CNAME", "TXT", "PTR")


class Refused(Exception):
    """An error answer."""

    def __init__(self, status: int, code: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers


@dataclass
class Cloudflare:
    """One account with one zone, and its state."""

    zone: str = "facility.test"
    records: dict[str, dict[str, Any]] = field(default_factory=dict[str, Any])
    asked: list[str] = field(default_factory=list[str])
    unknown: list[str] = field(default_factory=list[str])
    """Calls that are not emulated."""
    faults: list[tuple[str, Refused]] = field(default_factory=list[tuple[str, Refused]])
    """(method, error) to give once each, in order."""
    killed_after: int | None = None
    """After so many changes every further call is refused, as if the caller were dead."""
    page: int = 100
    """The most that one page holds."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _count: int = 0

    def __call__(self, environ: Any, start: Any) -> Iterable[bytes]:
        status, headers = 200, dict[str, str]()
        with self.lock:
            try:
                answer = self._call(Request(environ))
            except Refused as error:
                status, headers = error.status, {key.replace("_", "-"): told for key, told in error.headers.items()}
                said = [{"code": error.code, "message": error.message}]
                answer = {"success": False, "errors": said, "messages": [], "result": None}
        return Response(json.dumps(answer), status, headers, content_type="application/json")(environ, start)

    def _call(self, request: Request) -> dict[str, Any]:
        """The answer to one call; raises Refused."""
        method, path, query = request.method, request.path.removeprefix(_PREFIX), request.args.to_dict()
        self.asked.append(f"{method} {path}")
        fault = next((each for each in self.faults if each[0] == method), None)
        if fault is not None:
            self.faults.remove(fault)
            raise fault[1]
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refused(401, 10000, "Authentication error")
        data = request.get_json(silent=True) or {}
        match (method, path.strip("/").split("/")):
            case ("GET", ["zones"]):
                return self._listed([self._zone()], query, ())
            case ("GET", ["zones", zone_id]):
                self._known(zone_id)
                return _answer(self._zone())
            case ("GET", ["zones", zone_id, "dns_records"]):
                self._known(zone_id)
                return self._listed(list(self.records.values()), query, ("type", "name", "content"))
            case ("POST", ["zones", zone_id, "dns_records"]):
                self._known(zone_id)
                return _answer(self._create(data))
            case ("PUT", ["zones", zone_id, "dns_records", record_id]):
                self._known(zone_id)
                return _answer(self._replace(record_id, data))
            case ("DELETE", ["zones", zone_id, "dns_records", record_id]):
                self._known(zone_id)
                self._change()
                if self.records.pop(record_id, None) is None:
                    raise Refused(404, 81044, "Record does not exist.")
                return _answer({"id": record_id})
            case _:
                self.unknown.append(f"{method} {path}")
                raise Refused(501, 0, f"{method} {path} is not emulated")

    def _zone(self) -> dict[str, Any]:
        return {"id": ZONE_ID, "name": self.zone, "status": "active", "type": "full"}

    def _known(self, zone_id: str) -> None:
        if zone_id != ZONE_ID:
            raise Refused(403, 9109, "Unauthorized to access requested resource")

    def _change(self) -> None:
        if self.killed_after is not None:
            if self.killed_after == 0:
                raise Refused(400, 0, "the caller is dead")
            self.killed_after -= 1

    def _listed(self, items: list[dict[str, Any]], query: dict[str, str], filters: tuple[str, ...]) -> Any:
        unknown = query.keys() - {"page", "per_page", *filters}
        if unknown:
            self.unknown.append(f"list with {unknown}")
            raise Refused(501, 0, f"filters {unknown} are not emulated")
        page, size = int(query.get("page", 1)), min(int(query.get("per_page", 20)), self.page)
        found = [item for item in items if all(item[key] == query[key] for key in filters if key in query)]
        shown = found[(page - 1) * size : page * size]
        pages = max(1, -(-len(found) // size))
        info = {"page": page, "per_page": size, "count": len(shown), "total_count": len(found), "total_pages": pages}
        return {**_answer(shown), "result_info": info}

    def _valid(self, data: dict[str, Any]) -> dict[str, Any]:
        if data.get("type") not in _KINDS or not data.get("content") or data.get("data") is not None:
            raise Refused(400, 1004, "DNS Validation Error")
        name, ttl = str(data["name"]).lower(), int(data.get("ttl", 1))
        if name != self.zone and not name.endswith("." + self.zone):
            name = f"{name}.{self.zone}"
        if ttl != 1 and not 60 <= ttl <= 86400:
            raise Refused(
                400, 1004, "DNS Validation Error: TTL must be between 60 and 86400 seconds, or 1 for Automatic."
            )
        content = str(data["content"])
        if data["type"] in ("CNAME", "PTR"):
            content = content.rstrip(".")
        return {"type": data["type"], "name": name, "content": content, "ttl": ttl, "proxied": False}

    def _create(self, data: dict[str, Any]) -> dict[str, Any]:
        self._change()
        record = self._valid(data)
        for other in self.records.values():
            if (other["name"], other["type"], other["content"]) == (record["name"], record["type"], record["content"]):
                raise Refused(400, 81058, "An identical record already exists.")
            if other["name"] == record["name"] and "CNAME" in (other["type"], record["type"]):
                raise Refused(400, 81053, "An A, AAAA, or CNAME record with that host already exists.")
        self._count += 1
        record["id"] = f"{self._count:032x}"
        self.records[record["id"]] = record
        return record

    def _replace(self, record_id: str, data: dict[str, Any]) -> dict[str, Any]:
        self._change()
        if record_id not in self.records:
            raise Refused(404, 81044, "Record does not exist.")
        self.records[record_id] = {**self._valid(data), "id": record_id}
        return self.records[record_id]


def _answer(result: Any) -> dict[str, Any]:
    return {"success": True, "errors": [], "messages": [], "result": result}


@contextmanager
def running() -> Generator[tuple[str, Cloudflare], None, None]:
    """The API's URL, as lexicon takes it, and its state. Calls that are not emulated fail the test."""
    cloud = Cloudflare()
    with serving.application(cloud) as port:
        yield f"http://127.0.0.1:{port}{_PREFIX}", cloud
    assert cloud.unknown == [], "calls that are not emulated"
    assert cloud.faults == [], "faults that never came"
