"""A picture of the last `up`: how long each gate waited, and what happened to each machine."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tools.pictures.drawing import Canvas, measure
from tools.pictures.record import Run, Step
from tools.pictures.shapes import order
from tools.progress import GATE
from tools.state import DEVICE, EPHEMERAL, INSTALLATION, REMOVAL, SERVERS, SPOT_REQUEST, is_check

_WIDTH, _MARGIN, _LEFT, _RIGHT, _ROW = 960.0, 24.0, 284.0, 880.0, 22.0
_SHOWN = 14
"""Maximum number of machine rows. If there are more machines, the last row shows the others together."""
_SPOT_MACHINE = "metal-ipi:index:SpotMachine"
_PARTS = {
    DEVICE: ("-device", "order"), **dict.fromkeys(SERVERS, ("-server", "order")), SPOT_REQUEST: ("-request", "order"),
    _SPOT_MACHINE: ("-machine", "order"), EPHEMERAL: ("", "order"), INSTALLATION: ("-installation", "install"),
}  # fmt: skip
"""Resource type to the suffix of its name after the machine's name, and the activity that it stands for."""
_KINDS = {"order": "accent", "boot": "soft", "install": "update", "check": "create", "removal": "replace"}
"""Activity to its colour."""
_FAILED = "delete"
_ANSWERED = re.compile(r"([\w.-]+) after ([\d.]+) s")
"""A node's answer in the output of the SSH gate (provider/gates/ssh_reachable.py)."""
_TICKS = 8
_GATES = "Gates and checks"


@dataclass(frozen=True, kw_only=True)
class _Bar:
    kind: str
    begin: float
    end: float
    failed: bool = False
    ended: bool = True
    tip: str = ""


@dataclass(frozen=True, kw_only=True)
class _Row:
    label: str
    bars: Sequence[_Bar]

    @property
    def begin(self) -> float:
        return min(bar.begin for bar in self.bars)

    @property
    def end(self) -> float:
        return max(bar.end for bar in self.bars)

    @property
    def failed(self) -> bool:
        return any(bar.failed for bar in self.bars)

    @property
    def ended(self) -> bool:
        return all(bar.ended for bar in self.bars)


def svg(run: Run) -> str:
    """Draws gates, machines, and everything else by type."""
    sections = [(title, rows) for title, rows in _sections(run) if rows]
    top = 104.0
    height = top + sum(30 + _ROW * len(rows) for _, rows in sections) + 44
    outcome = "failed" if run.failed else "succeeded"
    draw = Canvas(
        _WIDTH,
        height,
        title=f"Timeline of the last up of stack {run.stack}",
        description=_description(run, sections, outcome),
    )
    draw.text(_MARGIN, 46, run.stack, 500, size=24, bold=True)
    draw.text(_MARGIN, 68, f"the last up, {run.began}", 600, "soft", size=13)
    sign = "✕" if run.failed else "✓"
    kind = f"sign {_FAILED if run.failed else 'create'}"
    text = f"{sign} {outcome} after {run.seconds:.0f} s"
    draw.text(_WIDTH - _MARGIN, 46, text, 300, kind, size=14, bold=True, right=True)
    if not sections:
        draw.text(_MARGIN, top + 8, "nothing was changed", 400, "soft", size=13)
    longest = max((run.seconds, *(row.end for _, rows in sections for row in rows), 1.0))
    scale = (_RIGHT - _LEFT) / longest
    _axis(draw, longest, scale, top, height - 44)
    y = top
    for title, rows in sections:
        draw.text(_MARGIN, y + 20, title, _LEFT - _MARGIN - 12, size=13, bold=True)
        y += 30
        for row in rows:
            _row(draw, row, y, scale)
            y += _ROW
    _legend(draw, height - 18, failed=any(row.failed for _, rows in sections for row in rows))
    return draw.svg()


def _row(draw: Canvas, row: _Row, y: float, scale: float) -> None:
    draw.text(_MARGIN + 8, y + 14, row.label, _LEFT - _MARGIN - 24, size=12, keep_end=True)
    for bar in sorted(row.bars, key=lambda bar: bar.begin):
        colour = _FAILED if bar.failed else _KINDS.get(bar.kind, bar.kind)
        x, width = _LEFT + bar.begin * scale, max((bar.end - bar.begin) * scale, 2)
        draw.box(x, y + 3, width, _ROW - 8, f"bar {colour}", tip=bar.tip)
        if bar.kind in _KINDS and measure(bar.kind, 10, bold=True) + 8 <= width:
            draw.text(x + 4, y + 14, bar.kind, width - 8, "inside", size=10, bold=True)
    took = row.end - row.begin
    text = f"{took:.0f} s" if took >= 10 else f"{took:.1f} s"
    text, kind = (f"✕ failed, {text}", f"sign {_FAILED}") if row.failed else (text, "soft")
    text += "" if row.ended else ", did not end"
    room, left, right = measure(text, 11, bold=True), _LEFT + row.begin * scale - 6, _LEFT + row.end * scale + 6
    # A text that does not fit behind its bar is placed before it, or inside it.
    if right + room <= _WIDTH - 8:
        draw.text(right, y + 14, text, room, kind, size=11, bold=row.failed)
    elif left - room >= _LEFT:
        draw.text(left, y + 14, text, room, kind, size=11, bold=row.failed, right=True)
    else:
        draw.text(right - 12, y + 14, text, room, "inside", size=11, bold=True, right=True)


def _axis(draw: Canvas, longest: float, scale: float, top: float, bottom: float) -> None:
    step = next(unit * 10**power for power in range(7) for unit in (1, 2, 5) if longest / (unit * 10**power) <= _TICKS)
    for second in range(0, int(longest) + 1, step):
        x = _LEFT + second * scale
        draw.line((x, top - 6), (x, bottom), kind="grid")
        draw.text(x, top - 12, f"{second} s", 60, "soft", size=11)


def _legend(draw: Canvas, y: float, *, failed: bool) -> None:
    x = _MARGIN
    for label, colour in (*_KINDS.items(), *([("failed", _FAILED)] if failed else [])):
        draw.box(x, y - 9, 14, 10, f"bar {colour}")
        draw.text(x + 20, y, label, 80, "soft", size=11)
        x += 100


# --- what is drawn ---------------------------------------------------------------------------------------------------


def _sections(run: Run) -> list[tuple[str, list[_Row]]]:
    machines: defaultdict[str, list[_Bar]] = defaultdict(list)
    others: defaultdict[str, list[_Bar]] = defaultdict(list)
    gates: list[_Row] = []
    temporary = next((step.name for step in run.steps if step.type == EPHEMERAL), None)
    for step in run.steps:
        ending, kind = _PARTS.get(step.type, ("", ""))
        if step.op == "refresh":
            continue
        if step.type == GATE or is_check(step.type, step.name):
            gates.append(_Row(label=step.name, bars=[_bar(step, "accent" if step.type == GATE else "check", run)]))
        elif kind and step.name.endswith(ending):
            goes = step.op in ("delete", "delete-replaced")
            machines[step.name.removesuffix(ending)].append(_bar(step, "removal" if goes else kind, run))
        elif step.type == REMOVAL and temporary:
            machines[temporary].append(_bar(step, "removal", run))
        else:
            others[step.type.rpartition(":")[2]].append(_bar(step, "soft", run))
    _boots(run, machines)
    rows = [_Row(label=name, bars=bars) for name, bars in sorted(machines.items(), key=lambda item: order(item[0]))]
    rest = [_Row(label=f"{n} of {kind}" if (n := len(bars)) > 1 else kind, bars=bars) for kind, bars in others.items()]
    return [(_GATES, gates), ("Machines", _chosen(rows)), ("Everything else", sorted(rest, key=lambda row: row.begin))]


def _bar(step: Step, kind: str, run: Run) -> _Bar:
    end = max(run.seconds, step.begin) if step.end is None else step.end
    suffix = f": {step.told}" if step.failed and step.told else ""
    unended = ", did not end" if step.end is None else ""
    tip = f"{step.name}, {step.op}, {step.begin:.1f} s to {end:.1f} s{unended}{suffix}"
    return _Bar(kind=kind, begin=step.begin, end=end, failed=step.failed, ended=step.end is not None, tip=tip)


def _boots(run: Run, machines: dict[str, list[_Bar]]) -> None:
    """Adds the boot of each machine: from the end of its order or installation until it answered a gate."""
    for gate in (step for step in run.steps if step.type == GATE):
        for node, seconds in _ANSWERED.findall(gate.told):
            bars, end = machines.get(node.partition(".")[0]), gate.begin + float(seconds)
            begin = max(
                (bar.end for bar in bars or () if bar.kind in ("order", "install") and bar.end < end), default=end
            )
            if bars and begin < end:
                bars.append(_Bar(kind="boot", begin=begin, end=end, tip=f"{node} answered after {end:.1f} s"))


def _chosen(rows: list[_Row]) -> list[_Row]:
    """Limits the number of rows: failed ones are kept first, then those that ended last; the others become one row."""
    if len(rows) <= _SHOWN:
        return rows
    first = sorted(range(len(rows)), key=lambda number: (not rows[number].failed, -rows[number].end))
    shown = set(first[: _SHOWN - 1])
    others = [rows[number] for number in range(len(rows)) if number not in shown]
    whole = _Bar(kind="soft", begin=min(row.begin for row in others), end=max(row.end for row in others))
    failed = sum(row.failed for row in others)
    label = f"{len(others)} more" + (f", {failed} of them failed" if failed else "")
    return [*(row for number, row in enumerate(rows) if number in shown), _Row(label=label, bars=[whole])]


def _description(run: Run, sections: Iterable[tuple[str, Sequence[_Row]]], outcome: str) -> str:
    """The picture in words."""
    gates = [row for title, rows in sections if title == _GATES for row in rows]
    gates_text = ", ".join(
        f"{row.label} {'failed after' if row.failed else ''} {row.end - row.begin:.0f} s" for row in gates
    )
    return f"It {outcome} after {run.seconds:.0f} s. " + (
        f"{_GATES}: {gates_text}." if gates_text else "Nothing was changed."
    )
