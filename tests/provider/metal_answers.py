"""A Metal API that answers what a test tells it, in the words of the API's description; anything else is a failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

Json = dict[str, Any]
Answer = Json | int | Callable[[httpx.Request], Json | int]
PROJECT = "52000fb2-ee46-4673-93a8-de2c2bdba33b"
ORGANIZATION = "0a0a0a0a-ee46-4673-93a8-de2c2bdba33b"
TOKEN = "a-token-nobody-may-see"
METROS = {"da": "metro-da", "lb": "metro-lb"}
FACILITIES = {"da11": "facility-da11", "da6": "facility-da6"}


def plan(slug: str, hour: float | None, memory: str = "64GB", **more: Any) -> Json:
    return {
        "id": f"plan-{slug}",
        "slug": slug,
        "specs": {"cpus": [{"count": 1, "type": "a processor"}], "memory": {"total": memory}},
        "pricing": {} if hour is None else {"hour": hour},
        "deployment_types": ["on_demand", "spot_market"],
        "available_in_metros": [{"href": f"/metal/v1/locations/metros/{id}"} for id in METROS.values()],
        "available_in": [{"href": f"/metal/v1/facilities/{id}"} for id in FACILITIES.values()],
        **more,
    }


PLANS = [plan("c3.small.x86", 0.75, "32GB"), plan("c3.medium.x86", 1.5), plan("c3.large.arm64", 2.5)]


@dataclass
class Api:
    """A good account, until a test says otherwise: `answers` by method and path below the API's address."""

    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    skew: timedelta = timedelta()
    """How far its clock is ahead of ours."""
    asked: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    """Method and path, and the body."""

    def __post_init__(self) -> None:
        project = f"/projects/{PROJECT}"
        systems = [{"slug": "custom_ipxe", "provisionable_on": [each["slug"] for each in PLANS]}]
        facilities = [{"code": code, "id": id, "metro": {"code": code[:2]}} for code, id in FACILITIES.items()]
        self.answers = {
            f"GET {project}": {"id": PROJECT, "name": "p"},
            f"POST {project}/ssh-keys": 422,
            f"GET {project}/devices": {"devices": []},
            f"GET {project}/ssh-keys": {"ssh_keys": []},
            f"GET {project}/spot-market-requests": {"spot_market_requests": []},
            f"GET {project}/ips": {"ip_addresses": []},
            f"GET {project}/virtual-networks": {"virtual_networks": []},
            f"GET {project}/hardware-reservations": {"hardware_reservations": []},
            "GET /plans": {"plans": PLANS},
            "GET /operating-systems": {"operating_systems": systems},
            "GET /locations/metros": {"metros": [{"code": code, "id": id} for code, id in METROS.items()]},
            "GET /facilities": {"facilities": facilities},
            "POST /capacity/metros": enough({}),
            "POST /capacity": enough({}),
            "GET /market/spot/prices/metros": {"spot_market_prices": {"da": {"c3.medium.x86": {"price": 0.4}}}},
            **self.answers,
        }

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/metal/v1")
        self.asked.append((f"{request.method} {path}", json.loads(request.content) if request.content else None))
        answer = self.answers.get(f"{request.method} {path}")
        if callable(answer):
            answer = answer(request)
        assert answer is not None, f"nobody told what to answer to {request.method} {path}"
        status, body = (200, answer) if isinstance(answer, dict) else (answer, {"errors": [f"told to say {answer}"]})
        date = format_datetime(datetime.now(UTC) + self.skew, usegmt=True)
        return httpx.Response(status, json=body, headers={"Date": date})


def enough(there: dict[str, int]) -> Callable[[httpx.Request], Json]:
    """What /capacity answers of so many machines by place; as many as are wanted where a place is not named."""

    def answer(request: httpx.Request) -> Json:
        servers = json.loads(request.content)["servers"]
        place = "metro" if urlsplit(str(request.url)).path.endswith("metros") else "facility"
        return {
            "servers": [
                {**each, "available": int(each["quantity"]) <= there.get(each[place], 1000)} for each in servers
            ]
        }

    return answer
