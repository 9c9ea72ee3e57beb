"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import groups
from tools import engine

TOLD = "told: "
"""How the name of a property begins that a test records (`record_property`) to have it printed at the end."""

LIMITS = {
    **{"nightly": 3600, "libvirt": 1800, "engine": 900, "conformance": 600, "ironic": 600},
    **{"lab": 300, "programs": 300},
}
"""Seconds that a test may take with its fixtures, by marker: the first that a test has counts. Then it fails, and
pytest-timeout prints the stacks of all threads. They are for a test that hangs, not for one that is slow."""
QUICK = 120
"""The same for a test without any of these markers."""

SERVERS = frozenset({"artifact_host", "bmc", "cluster", "collected", "metal", "no_waiting", "site"})
"""Fixtures that start servers, or are for tests that do: whoever uses one has the marker `servers`."""


def pytest_configure() -> None:
    """Let tests run the engine that set-up found or built; without one they are listed skips."""
    # A shell starts what runs in the background, and nohup, with SIGINT ignored, and what tests start inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = engine.find()
    if found is not None:
        os.environ.setdefault("METAL_IPI_ENGINE", str(found.path))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Tests that are coroutines run on asyncio, each in an event loop of its own."""
    return "asyncio"


@pytest.fixture(scope="session")
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with one certificate authority, which has signed nothing."""
    import trustme

    file = tmp_path_factory.mktemp("trusted") / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    return file


@pytest.fixture(autouse=True)
def few_authorities(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of servers in the test's own process trust one authority instead of the system's 140: to load those takes
    35 ms for each client, longer than what most of these tests do with it."""
    if request.node.get_closest_marker("servers") and not any(map(request.node.get_closest_marker, LIMITS)):
        monkeypatch.setenv("SSL_CERT_FILE", str(request.getfixturevalue("one_authority")))


@pytest.fixture
def collected() -> Iterator[None]:
    """Collects what a test leaves open while it is forgiven that, and not in somebody else's test."""
    yield
    gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its limit, unless it has one of its own, and the marker `servers` to those that use them."""
    for item in items:
        if isinstance(item, pytest.Function) and SERVERS.intersection(item.fixturenames):
            item.add_marker("servers")
        markers = {marker.name for marker in item.iter_markers()}
        for group in groups.ALL:
            if group.has(markers) and not group.reads(item.path):
                raise pytest.UsageError(f"{item.nodeid} would not be run: tests/groups.py does not find its file")
        if item.get_closest_marker("timeout") is None:
            kinds = (seconds for kind, seconds in LIMITS.items() if item.get_closest_marker(kind))
            item.add_marker(pytest.mark.timeout(next(kinds, QUICK)))


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what was imported and collected, all of which stays; and have it come as
    seldom from the first test on as from the first program on (stacks/spare_time.py)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have to tell beside passing, whichever process ran them; the last of each name."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    properties = [pair for report in reports for pair in getattr(report, "user_properties", ())]
    for name, text in {name: text for name, text in properties if name.startswith(TOLD)}.items():
        terminalreporter.section(name.removeprefix(TOLD))
        terminalreporter.line(text)
