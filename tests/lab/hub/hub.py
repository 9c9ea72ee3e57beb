"""What tests of the hub need."""

from __future__ import annotations

from collections.abc import Callable

from lab.hub import control, programs
from lab.setup import HUB, install, missing


def set_up(report: Callable[[str], None]) -> None:
    """Install and build what a hub is made of where one can run; elsewhere its tests are listed skips."""
    if programs.refusal() is None:
        if absent := missing(HUB):
            install(absent, report)
        control.setup(report)
