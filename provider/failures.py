"""What resources of one update have to know of each other's failures. A plug-in lives as long as one update."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Failures:
    """Shared by the resource types of a plug-in."""

    no_cluster: str | None = None
    """What failed without which no cluster comes about: there is nothing to wait for any more."""
