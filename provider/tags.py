"""The tags of ordered machines."""

from __future__ import annotations

from collections.abc import Sequence


def identifying(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags that identify a machine after a crash: its stack, cluster, run and name, in this order.

    Without the run, a machine of another checkout of the same stack would be taken for one of an earlier run.
    """
    marks = ("stack", "cluster", "run", "name")
    return tuple(tag for mark in marks for tag in tags if tag.startswith(f"metal-ipi:{mark}="))
