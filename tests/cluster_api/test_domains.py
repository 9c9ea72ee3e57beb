"""Failure domains: what is refused, and how machines are spread."""

from __future__ import annotations

from typing import Any

import pytest

from metal_ipi.cluster_api import domains
from metal_ipi.cluster_api.reconcilers.machine import choose
from tests.cluster_api.test_going import Steps, work_of

_LISTED = ("control-plane-0", "control-plane-1", "control-plane-2", "worker-0", "worker-1")
_ROOMS = {"a": ["control-plane-0", "control-plane-1", "worker-0"], "b": ["control-plane-2", "worker-1"]}


def _facility(*listed: tuple[str, list[str]]) -> dict[str, Any]:
    return {"spec": {"failureDomains": [{"name": name, "servers": servers} for name, servers in listed]}}


def test_all_that_is_wrong_is_told_at_once() -> None:
    facility = _facility(("a", ["control-plane-0", "worker-9"]), ("b", ["control-plane-0"]), ("b", ["worker-1"]))
    assert domains.problems(facility, _LISTED) == [
        "spec.failureDomains has b 2 times: list it once",
        "server control-plane-0 is in 2 domains: list it in one",
        "spec.failureDomains names server worker-9 in a, which settings.platform.servers does not list",
    ]
    assert not domains.problems(_facility(*_ROOMS.items()), _LISTED)


@pytest.mark.parametrize(
    ("used", "expected"),
    [([], "a"), (["a"], "b"), (["a", "b"], "a"), (["a", "a", "b"], None), (["None"], "a")],
)
def test_a_control_plane_is_spread_over_what_has_room(used: list[str], expected: str | None) -> None:
    assert domains.next_for(_ROOMS, _LISTED[:3], used) == expected


def test_a_machine_takes_a_server_of_its_domain_only() -> None:
    servers = {name: server for name, server in work_of(Steps()).servers.items() if name in _ROOMS["b"]}
    asked: dict[str, Any] = {"role": "control-plane", "servers": servers, "refused": frozenset(), "domain": "b"}
    assert choose(wanted=None, taken={}, **asked).server == "control-plane-2"
    assert "is free in failure domain b" in choose(wanted=None, taken={"control-plane-2": "m"}, **asked).message
    assert "does not list in failure domain b" in choose(wanted="control-plane-0", taken={}, **asked).message
    assert domains.home(_ROOMS, "worker-1") == "b" and domains.home(_ROOMS, "worker-7") is None
