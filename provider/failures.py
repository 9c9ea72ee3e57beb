"""Failures that resources of the same update share. A plugin process lives as long as one update."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Failures:
    """Shared by the resource types of a plugin."""

    no_cluster: str | None = None
    """The failed step, if no cluster can be formed without it: then other gates need not wait any longer."""
