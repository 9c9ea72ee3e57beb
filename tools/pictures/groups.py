"""The layout of the machines of each role, and the texts in their boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.pictures.shapes import ROLES, Machine, Role, Topology

WIDTH, MARGIN, GAP = 960.0, 24.0, 18.0
COLUMN = (WIDTH - 2 * MARGIN - 2 * GAP) / 3
PAD, LINE = 12.0, 18.0
_SHOWN = 6
"""Maximum number of boxes per role and column. If there are more machines, the last box says how many."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The machines of a role, and their place in the picture."""

    role: Role
    machines: Sequence[Machine]
    kind: str
    """The kind of all machines; empty if it is shown in each box."""
    more: Sequence[Machine]
    """The machines without a box of their own."""
    x: float
    columns: int
    lines: int
    """Number of text lines in each box."""

    @property
    def width(self) -> float:
        """Width of its frame."""
        return self.columns * COLUMN + (self.columns - 1) * GAP

    @property
    def box(self) -> float:
        """Height of a machine's box."""
        return 10 + LINE * self.lines + 6

    @property
    def height(self) -> float:
        """Height of its frame; other frames may be higher."""
        rows = -(-(len(self.machines) + bool(self.more)) // self.columns)
        return 34 + rows * (self.box + 8) + 4


def grouped(topology: Topology) -> list[Group]:
    """The roles that have machines, side by side in three columns; the first role gets the free columns."""
    there: list[Role] = [role for role in ROLES if topology.of(role)]
    groups: list[Group] = []
    x = MARGIN
    for number, role in enumerate(there):
        columns = 4 - len(there) if number == 0 else 1
        shown, more = _chosen(topology.of(role), _SHOWN * columns)
        kinds = {each.kind for each in (*shown, *more)}
        kind = "" if len(kinds) > 1 or shown[0].bmc else kinds.pop()
        lines = max(1 + len(facts(each, kind=not kind)) for each in shown)
        if more:
            lines = max(lines, 3)
        groups.append(Group(role=role, machines=shown, kind=kind, more=more, x=x, columns=columns, lines=lines))
        x += groups[-1].width + GAP
    return groups


def _chosen(machines: list[Machine], most: int) -> tuple[list[Machine], list[Machine]]:
    """The machines with a box of their own, and the others. Changed machines get a box first."""
    if len(machines) <= most:
        return machines, []
    first = sorted(range(len(machines)), key=lambda number: machines[number].change == "same")
    shown = set(first[: most - 1])
    return (
        [each for number, each in enumerate(machines) if number in shown],
        [each for number, each in enumerate(machines) if number not in shown],
    )


def facts(machine: Machine, *, kind: bool) -> list[tuple[str, str]]:
    """The labelled lines in a machine's box. `kind`: also the kind of the machine."""
    if machine.gone:
        return [("", "removed after the installation")]
    lines = [("", machine.kind)] if kind else []
    if machine.public == machine.private:
        lines += [("address", machine.public)] if machine.public else []
    else:
        lines += [
            (label, value) for label, value in (("public", machine.public), ("private", machine.private)) if value
        ]
    lines += [(label, value) for label, value in (("MAC", machine.mac), ("BMC", machine.bmc)) if value]
    return lines + ([("", ", ".join(machine.notes))] if machine.notes else [])
