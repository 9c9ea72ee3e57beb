"""A picture of a cluster: names at the top, then the entry points of traffic, then machines and their networks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tools.pictures.drawing import SIGNS, Canvas, listed, measure
from tools.pictures.groups import COLUMN, GAP, LINE, MARGIN, PAD, WIDTH, Group, facts, grouped
from tools.pictures.resources import CHANGES, UNKNOWN, Change
from tools.pictures.shapes import Machine, Role, Thing, Topology

_TITLES: dict[Role, str] = {"control-plane": "Control plane", "worker": "Workers", "bootstrap": "Bootstrap"}

Line = tuple[str, str]
"""A text, and its style."""


def svg(topology: Topology) -> str:
    """Draws it, with at most a dozen machines as boxes of their own."""
    return _Drawing(topology).svg()


class _Drawing:
    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._groups = grouped(topology)
        self._marks = frozenset[Change]() if topology.is_new else topology.changes - {"same"}
        self._cards = [self._api(), self._services(), self._platform()]
        self._names_height = 38 + 20 * (len(topology.names) + (topology.nodes > 0)) + 6
        self._cards_height = 36 + LINE * max(len(lines) for _, lines in self._cards) + 6
        self._groups_height = max((group.height for group in self._groups), default=0)
        self._names_top = 84.0
        self._cards_top = self._names_top + self._names_height + 26
        self._groups_top = self._cards_top + self._cards_height + 26
        self._rails_top = self._groups_top + self._groups_height + 20
        self._legend_top = self._rails_top + 38 * len(topology.networks) + 6
        title = f"Topology of cluster {topology.name}"
        self._canvas = Canvas(WIDTH, self._legend_top + 30, title=title, description=_description(topology))

    def svg(self) -> str:
        self._header()
        self._flows()
        self._names()
        for number, (title, lines) in enumerate(self._cards):
            self._card(MARGIN + number * (COLUMN + GAP), title, lines)
        self._wires()
        for group in self._groups:
            self._group(group)
        for number in range(len(self._topology.networks)):
            self._rail(number)
        self._legend()
        return self._canvas.svg()

    def _header(self) -> None:
        topology, draw = self._topology, self._canvas
        draw.text(MARGIN, 46, topology.name, 600, size=24, bold=True)
        draw.text(MARGIN, 68, topology.domain, 400, "soft", size=13)
        right = WIDTH - MARGIN
        draw.text(right, 46, f"OpenShift {topology.version}", 300, size=14, right=True)
        if topology.planned:
            draw.text(right, 68, f"preview: {_outlook(topology)}", 500, "accent", size=13, bold=True, right=True)

    # --- names, and where traffic comes in ---------------------------------------------------------------------------

    def _names(self) -> None:
        topology, draw, y = self._topology, self._canvas, self._names_top
        draw.box(MARGIN, y, WIDTH - 2 * MARGIN, self._names_height, "card")
        draw.text(MARGIN + PAD, y + 22, "DNS", 60, size=13, bold=True)
        zone = f"zone {topology.zone}" if topology.names else "no names are known"
        draw.text(WIDTH - MARGIN - PAD, y + 22, zone, 600, "soft", right=True)
        x, room = MARGIN + COLUMN + GAP + PAD, WIDTH - 2 * MARGIN - COLUMN - GAP - 2 * PAD
        y += 44
        for each in topology.names:
            sign = draw.sign(WIDTH - MARGIN - PAD, y, each.change) if each.change in self._marks else 0
            draw.text(MARGIN + PAD, y, each.name, COLUMN - 2 * PAD, bold=True, keep_end=True)
            known = [value for value in each.values if value != UNKNOWN]
            values = [*known, *_unknown(len(each.values) - len(known))]
            kind = "" if known else "unknown"
            draw.text(x, y, listed(values, room - sign, 12), room - sign, kind, full=", ".join(values[:50]))
            y += 20
        if topology.nodes:
            nodes = f"{topology.nodes} node names" if topology.nodes > 1 else "1 node name"
            draw.text(MARGIN + PAD, y, nodes, COLUMN - 2 * PAD, bold=True)
            draw.text(x, y, "each to its own address", room, "soft")

    def _card(self, x: float, title: str, lines: Sequence[Line]) -> None:
        draw, y = self._canvas, self._cards_top
        draw.box(x, y, COLUMN, self._cards_height, "card")
        draw.text(x + PAD, y + 22, title, COLUMN - 2 * PAD, size=13, bold=True)
        y += 44
        for text, kind in lines:
            draw.text(x + PAD, y, text, COLUMN - 2 * PAD, kind)
            y += LINE

    def _api(self) -> tuple[str, list[Line]]:
        how, address = self._topology.api
        masters = [each for each in self._topology.serving if each.change != "delete"]
        to = f"to {_count(len(masters), 'control plane machine')}"
        own = [(f"address {address}", "unknown" if address == UNKNOWN else "")] if address else []
        return "API, port 6443", [*own, (how, ""), (to, "soft")]

    def _services(self) -> tuple[str, list[Line]]:
        workers, masters = self._standing("worker"), self._standing("control-plane")
        whom = _count(len(workers), "worker") if workers else _count(len(masters), "control plane machine")
        lines = [("*.apps: DNS round robin", ""), (f"to {whom}", "soft")]
        for pool in self._topology.pools:
            sign = f", {SIGNS[pool.change]}" if pool.change in self._marks else ""
            lines += [(f"pool {pool.name}: {pool.addresses}", ""), (pool.how + sign, "soft")]
        return "Ingress and services", lines

    def _platform(self) -> tuple[str, list[Line]]:
        topology = self._topology
        lines = [(topology.platform or "not known", ""), *([(topology.place, "")] if topology.place else [])]
        if topology.machines and not topology.of("bootstrap"):
            lines.append(("no bootstrap machine: it installs itself", "soft"))
        return "Platform", lines

    def _standing(self, role: Role) -> list[Machine]:
        return [each for each in self._topology.of(role) if each.change != "delete"]

    def _flows(self) -> None:
        """Arrows from the names to the entry points, and from there to the machines."""
        for number, label in enumerate(("api, api-int", "*.apps")):
            x = MARGIN + COLUMN / 2 + number * (COLUMN + GAP)
            if self._topology.names:
                self._arrow(x, self._names_top + self._names_height, self._cards_top)
                self._canvas.text(x + 10, self._cards_top - 9, label, 100, "soft", size=11)
            if self._groups:
                self._arrow(x, self._cards_top + self._cards_height, self._groups_top)

    def _arrow(self, x: float, top: float, bottom: float) -> None:
        self._canvas.line((x, top), (x, bottom - 6))
        self._canvas.line((x - 5, bottom - 9), (x + 5, bottom - 9), (x, bottom - 1), (x - 5, bottom - 9), kind="arrow")

    # --- machines ----------------------------------------------------------------------------------------------------

    def _group(self, group: Group) -> None:
        draw, y = self._canvas, self._groups_top
        passing = group.role == "bootstrap"
        draw.box(group.x, y, group.width, self._groups_height, "group dashed" if passing else "group")
        everyone = [*group.machines, *group.more]
        title = _TITLES[group.role] + (f" · {len(everyone)}" if len(everyone) > 1 else "")
        taken = measure(title, 13, bold=True)
        draw.text(group.x + PAD, y + 22, title, taken, size=13, bold=True)
        if group.kind:
            room = group.width - 2 * PAD - taken - 8
            draw.text(group.x + group.width - PAD, y + 22, group.kind, room, "soft", right=True)
        width = (group.width - 2 * PAD - 8 * (group.columns - 1)) / group.columns
        for number, machine in enumerate((*group.machines, None) if group.more else group.machines):
            row, column = divmod(number, group.columns)
            x, top = group.x + PAD + column * (width + 8), y + 34 + row * (group.box + 8)
            if machine is None:
                self._more(group, x, top, width)
            else:
                self._machine(machine, x, top, width, group.box, kind=not group.kind)

    def _machine(self, machine: Machine, x: float, y: float, width: float, height: float, *, kind: bool) -> None:
        draw, marked = self._canvas, machine.change in self._marks
        dashed = " dashed" if machine.role == "bootstrap" else ""
        draw.box(x, y, width, height, f"box {machine.change}{dashed}" if marked else f"box{dashed}")
        draw.text(x + 10, y + 20, machine.name, width - 20, size=13, bold=True, keep_end=True)
        # Next to the second line, because names need all their space.
        sign = draw.sign(x + width - 10, y + 20 + LINE, machine.change) if marked else 0
        for number, (label, value) in enumerate(facts(machine, kind=kind), start=1):
            top, taken = y + 20 + number * LINE, 52 if label else 0
            draw.text(x + 10, top, label, taken, "soft", size=11)
            unknown = "unknown" if value == UNKNOWN else "" if label else "soft"
            draw.text(x + 10 + taken, top, value, width - 20 - taken - (sign if number == 1 else 0), unknown)

    def _more(self, group: Group, x: float, y: float, width: float) -> None:
        draw = self._canvas
        names = [each.name for each in group.more]
        tip = ", ".join(names[:100]) + (f" and {len(names) - 100} more" if len(names) > 100 else "")
        draw.box(x, y, width, group.box, "box", tip=tip)
        draw.text(x + 10, y + 20, f"{len(names)} more", width - 20, size=13, bold=True)
        draw.text(x + 10, y + 20 + LINE, f"{names[0]} to {names[-1]}", width - 20, "soft", size=11, keep_end=True)
        if self._marks:
            draw.text(x + 10, y + 20 + 2 * LINE, _counted(group.more), width - 20, "soft", size=11)

    # --- networks ----------------------------------------------------------------------------------------------------

    def _wires(self) -> None:
        """Lines from each group to its lowest network. The networks are drawn later, on top of them."""
        for group in self._groups:
            mine = [number for number, each in enumerate(self._topology.networks) if group.role in each.roles]
            if mine:
                x = group.x + 18
                bottom = self._rails_top + 38 * mine[-1] + 14
                self._canvas.line((x, self._groups_top + self._groups_height), (x, bottom))

    def _rail(self, number: int) -> None:
        draw, network = self._canvas, self._topology.networks[number]
        y = self._rails_top + 38 * number
        draw.box(MARGIN, y, WIDTH - 2 * MARGIN, 28, "rail")
        for group in self._groups:
            if group.role in network.roles:
                draw.dot(group.x + 18, y + 14)
        right = WIDTH - MARGIN - PAD
        sign = draw.sign(right, y + 19, network.change) if network.change in self._marks else 0
        name, detail = MARGIN + 34, MARGIN + COLUMN + GAP + 34
        draw.text(name, y + 19, network.name, detail - name - 26, size=12.5, bold=True)
        # The third column may have a dot.
        dotted = any(group.x > detail and group.role in network.roles for group in self._groups)
        end = detail + COLUMN - 26 if dotted else right - sign
        draw.text(detail, y + 19, network.detail, end - detail, "soft")

    def _legend(self) -> None:
        draw, x, y = self._canvas, MARGIN, self._legend_top + 12
        draw.dot(x + 6, y - 4)
        parts = ["in this network"]
        if self._topology.of("bootstrap"):
            parts.append("dashed: there only while the cluster is installed")
        text = " · ".join(parts)
        draw.text(x + 18, y, text, 430, "soft", size=11)
        right = WIDTH - MARGIN
        for change in reversed(CHANGES):
            if change in self._marks:
                right -= draw.sign(right, y, change) + 8


def _unknown(number: int) -> list[str]:
    """A short text for a number of unknown addresses."""
    return [UNKNOWN if number == 1 else f"{number} addresses {UNKNOWN}"] if number else []


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _outlook(topology: Topology) -> str:
    """A summary of a preview."""
    if topology.is_new:
        return "+ all of it, from nothing"
    return _counted(topology.things) or "nothing of this changes"


def _counted(things: Sequence[Thing]) -> str:
    """The numbers of new, changed, replaced and deleted things: `+ 2 new, ~ 1 changed`."""
    counts = Counter(each.change for each in things)
    return ", ".join(SIGNS[change].replace(" ", f" {counts[change]} ", 1) for change in CHANGES if counts[change])


def _description(topology: Topology) -> str:
    """The picture in words."""
    masters = _count(len(topology.serving), "control plane machine")
    arbiters = len(topology.of("control-plane")) - len(topology.serving)
    masters += f", {_count(arbiters, 'arbiter')}" if arbiters else ""
    workers = _count(len(topology.of("worker")), "worker")
    how, address = topology.api
    networks = ", ".join(each.name for each in topology.networks)
    preview_text = f" Preview: {_outlook(topology)}." if topology.planned else ""
    return (
        f"{topology.domain}, OpenShift {topology.version}, on {topology.platform} {topology.place}: "
        f"{masters} and {workers}. API: {how} {address}. Networks: {networks}.{preview_text}"
    )
