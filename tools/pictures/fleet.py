"""All clusters with their status, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.pictures.drawing import Canvas

_WIDTH, _MARGIN, _ROW, _TOP = 960.0, 24.0, 46.0, 64.0
_NAME, _FACTS, _STATUS = 300.0, 330.0, 230.0
_COLOURS = {"as declared": "create", "under way": "update", "failed": "delete", "paused": "replace"}
"""The colour of a status; that of any other is soft."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cluster."""

    name: str
    place: str
    """Which hub it is on; empty: none."""
    facts: str
    """Platform, release, machines."""
    status: str
    told: str
    """What is known of it, or what is wrong."""


def svg(rows: Sequence[Row]) -> str:
    """Draw them in their order."""
    title = f"{len(rows)} clusters"
    canvas = Canvas(
        _WIDTH,
        _TOP + _ROW * len(rows) + _MARGIN,
        title=title,
        description="; ".join(f"{row.name}: {row.status}" for row in rows),
    )
    canvas.text(_MARGIN, 40, title, _WIDTH - 2 * _MARGIN, size=18, bold=True)
    for number, row in enumerate(rows):
        top = _TOP + _ROW * number
        colour = _COLOURS.get(row.status, "soft")
        canvas.box(_MARGIN, top, _WIDTH - 2 * _MARGIN, _ROW - 8, "card")
        canvas.box(_MARGIN, top, 6, _ROW - 8, f"bar {colour}")
        left = _MARGIN + 18
        canvas.text(left, top + 17, row.name, _NAME, size=13, bold=True)
        canvas.text(left, top + 32, row.place or "no hub", _NAME, "soft", size=11)
        canvas.text(left + _NAME + 10, top + 17, row.facts, _FACTS, size=11)
        canvas.text(left + _NAME + 10, top + 32, row.told, _WIDTH - left - _NAME - _MARGIN - 20, "soft", size=11)
        canvas.text(
            _WIDTH - _MARGIN - 10, top + 17, row.status, _STATUS, f"sign {colour}", size=12, bold=True, right=True
        )
    return canvas.svg()
