"""The tags of machines that are ordered."""

from __future__ import annotations

from collections.abc import Sequence


def identifying(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags a machine is found by after a crash: its stack, its cluster, its run and its name, in this order.

    Without the run, another checkout's machine of the same stack would be taken for an earlier run's.
    """
    marks = ("stack", "cluster", "run", "name")
    return tuple(tag for mark in marks for tag in tags if tag.startswith(f"metal-ipi:{mark}="))
