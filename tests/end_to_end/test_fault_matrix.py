"""Every call of the Metal API that an `up` and a `destroy` make, failed in each of six ways.

A way is set for all calls at once: each is struck the first time it is made. Where an answer can be lost, a call fails
twice: the first time it is not carried out; made again, it is, and nobody hears of it. What passes must be got over
within the same run. A refusal (422) ends a run with a clear error, and the next one goes on, to the next call that is
refused. At the end everything is there once; then nothing is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import TOLD
from tests.end_to_end.cluster import names
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Done, Project

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]

_ADDRESSES: dict[str, Any] = {
    "type": "metallb-bgp", "install": False, "pools": [{"name": "elastic", "reserve": 4, "aggregationLength": 30}],
}  # fmt: skip
_SPOT: dict[str, Any] = {"maxPrice": 5.0}
_NETWORK: dict[str, Any] = {
    "name": "storage", "vlan": 1100, "roles": ["control-plane", "worker"], "gateway": {"size": 16},
}  # fmt: skip
_MOST_RUNS = 25
"""More are not needed before all calls were refused once."""
_REFUSAL = "the lab refuses this once"


@dataclass(frozen=True)
class Asks:
    """A facility that asks much of the API."""

    variant: dict[str, Any]
    """Its settings."""
    workers: tuple[str, ...]
    once: dict[str, int]
    """How many there are at the end, by kind; a gateway's subnet is a reservation, too."""
    stacks: int = 1


ASKS = {
    "networks": Asks(
        {"workers": {"count": 1}, "serviceAddresses": _ADDRESSES, "platform": {"spot": _SPOT, "networks": [_NETWORK]}},
        workers=("lab-worker-0",),
        once={"ssh_keys": 1, "reservations": 2, "virtual_networks": 1, "gateways": 1, "spot_market_requests": 1},
    ),
    "pools": Asks(
        {
            "workers": {"count": 0, "pools": [{"name": "spot", "first": 10, "count": 2}]},
            "serviceAddresses": _ADDRESSES,
            "platform": {"spot": _SPOT},
        },
        workers=("lab-worker-10", "lab-worker-11"),
        once={"ssh_keys": 1, "reservations": 1, "virtual_networks": 0, "gateways": 0, "spot_market_requests": 2},
        stacks=2,
    ),
}
"""A VLAN; and workers in a stack of their own, which cannot have one."""


@dataclass(frozen=True)
class Way:
    """How every call fails."""

    name: str
    faults: tuple[dict[str, Any], ...]
    """What a call meets the first time, and the second."""
    passes: bool
    """Whether a run must get over it by itself."""
    only: str = ""
    """The methods of the calls that fail; empty: any."""

    @property
    def match(self) -> dict[str, Any]:
        """As a fault says it."""
        return {"match": {"method": self.only}} if self.only else {}


def _lost(fault: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Not carried out, then carried out: in both cases nobody hears of it."""
    return fault, {**fault, "when": "after"}


_REFUSED = ({"kind": "status", "status": 422, "body": {"errors": [_REFUSAL]}},)
WAYS = (
    Way("reset", _lost({"kind": "reset"}), passes=True),
    Way("429", ({"kind": "status", "status": 429, "headers": {"Retry-After": "0"}},), passes=True),
    Way("422 of changes", _REFUSED, passes=False, only="POST|PUT|PATCH|DELETE"),
    Way("500", _lost({"kind": "status", "status": 500}), passes=True),
    Way("timeout", _lost({"kind": "hang", "seconds": 2.5}), passes=True),
    Way("half a body", ({"kind": "half_body"},), passes=True),
    Way("422", _REFUSED, passes=False),
)


class Matrix:
    """What was tried, and what became of it."""

    def __init__(self) -> None:
        self.tried: Counter[tuple[str, str]] = Counter()
        """Calls by operation and way."""
        self.clean: Counter[tuple[str, str]] = Counter()

    def note(self, operation: str, way: Way, calls: list[str], *, clean: bool) -> None:
        """One way, all calls of an operation."""
        self.tried[operation, way.name] += len(calls)
        self.clean[operation, way.name] += len(calls) if clean else 0

    def text(self) -> str:
        """As a table."""
        rows = [
            f"{operation:8} {way:14} {calls:4} calls struck, {self.clean[operation, way]:4} ended clean"
            for (operation, way), calls in self.tried.items()
        ]
        return "\n".join([*rows, f"{'all':23} {self.tried.total():4} calls struck, {self.clean.total():4} ended clean"])


@pytest.fixture(scope="module", params=ASKS.values(), ids=list(ASKS))
def asks(request: pytest.FixtureRequest) -> Asks:
    """What is asked of the API."""
    return request.param


@pytest.fixture(scope="module")
def facility(asks: Asks, tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    """A lab with a stack that asks much of the API: addresses, BGP, the spot market, and a VLAN or a pool."""
    for project in copies(tmp_path_factory.mktemp("matrix"), variant=asks.variant):
        project.start_lab()
        yield project


@pytest.fixture
def installation(facility: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The stack, nothing of it there."""
    monkeypatch.setenv("METAL_API_TIMEOUT", "2")
    monkeypatch.setenv("KEEP_LAB", "1")  # the lab tells what was struck, so it must outlive `down`
    if facility.state.exists():  # of a test that failed
        facility.faults()
        facility.make("down")
    return facility


@pytest.fixture(scope="module")
def all_results() -> Matrix:
    """The results of all tests here."""
    return Matrix()


@pytest.fixture
def matrix(all_results: Matrix, record_property: Callable[[str, object], None]) -> Generator[Matrix, None, None]:
    """The same, told at the end."""
    yield all_results
    record_property(f"{TOLD}calls of the Metal API, failed in each way", all_results.text())


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_call_fails_once(way: Way, asks: Asks, installation: Project, matrix: Matrix) -> None:
    empty = _things(installation)
    for operation, settled in (
        ("up", lambda project: _all_there_once(project, asks)),
        ("down", lambda project: _nothing(project, empty)),
    ):
        struck, problem = _with_faults(installation, operation, way, settled)
        matrix.note(operation, way, struck, clean=problem is None)
        assert problem is None, f"{operation}, {way.name}: {problem}"
        assert struck, "nothing was asked of the API"


def _with_faults(
    project: Project, operation: str, way: Way, settled: Callable[[Project], str | None]
) -> tuple[list[str], str | None]:
    """Run until it succeeds; returns the calls that were struck, and what is wrong, if anything."""
    project.faults(*({**fault, "each": True, **way.match} for fault in way.faults))
    problem: str | None = f"it does not end well in {_MOST_RUNS} runs"
    for _ in range(_MOST_RUNS):
        before = len(_struck(project))
        done = project.start(operation).wait()
        problem = None if done.status == 0 else _unclear(done, way, fresh=len(_struck(project)) > before)
        if done.status == 0 or problem is not None:
            break
    struck = _struck(project)
    project.faults()
    return struck, problem or settled(project)


def _unclear(done: Done, way: Way, *, fresh: bool) -> str | None:
    """What is wrong with a run that failed."""
    if way.passes:
        return f"it should have passed: {done.text[-3000:]}"
    if not fresh:
        return f"it failed without a fault: {done.text[-3000:]}"
    if _REFUSAL not in done.text or "Traceback" in done.text:
        return f"the error does not say what was refused: {done.text[-3000:]}"
    return None


def _struck(project: Project) -> list[str]:
    """The calls that have failed until now; one that failed twice is there twice."""
    return [call for fault in json.loads(project.inside("hits")) for call in fault["calls"]]


def _things(project: Project) -> dict[str, list[str]]:
    """What the facility holds, by kind."""
    kinds = {name: found for name, found in project.holdings().items() if isinstance(found, list) and name != "faults"}
    return {
        name: sorted(str(entry.get("hostname") or entry.get("label") or entry.get("name")) if isinstance(entry, dict)
                     else str(entry) for entry in found)
        for name, found in kinds.items()
    }  # fmt: skip


def _all_there_once(project: Project, asks: Asks) -> str | None:
    """The cluster, finished, and nothing twice."""
    things = _things(project)
    if sorted((*names(workers=0), *asks.workers)) != things["devices"]:
        return f"the devices are {things['devices']}"
    if wrong := {kind: things[kind] for kind, number in asks.once.items() if len(things[kind]) != number}:
        return f"there are {wrong}"
    known = project.known_ids()
    if lost := [entry["id"] for entry in project.holdings()["devices"] if entry["id"] not in known]:
        return f"the state does not know {lost}"
    again = project.start("up", "POOLS=all").wait()
    unchanged = again.status == 0 and again.out.count("no changes") == asks.stacks
    return None if unchanged else f"up again: {again.text[-2000:]}"


def _nothing(project: Project, empty: dict[str, list[str]]) -> str | None:
    """As it was in the beginning."""
    things = _things(project)
    return None if things == empty else f"left: {things}"
