"""What all tests share."""

from __future__ import annotations

import os

import pytest

from tools import engine

TOLD = "told: "
"""How the name of a property begins that a test records (`record_property`) to have it printed at the end."""


def pytest_configure() -> None:
    """Let tests run the engine that set-up found or built; without one they are listed skips."""
    found = engine.find()
    if found is not None:
        os.environ.setdefault("METAL_IPI_ENGINE", str(found.path))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have to tell beside passing, whichever process ran them; the last of each name."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    properties = [pair for report in reports for pair in getattr(report, "user_properties", ())]
    for name, text in {name: text for name, text in properties if name.startswith(TOLD)}.items():
        terminalreporter.section(name.removeprefix(TOLD))
        terminalreporter.line(text)
