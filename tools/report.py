"""The output at the end of an operation: nodes with their checks, durations, changes, failures."""

from __future__ import annotations

from typing import Any, cast

from rich.table import Table

from tools.progress import DONE, Progress
from tools.screen import Redactor, Screen
from tools.state import is_check, urn_name

_PHASES = (
    ("equinix-metal:index/device:Device", "machines"),
    ("metal-ipi:index:EphemeralMachine", "bootstrap machine"),
    ("metal-ipi:index:DnsRecords", "DNS records"),
    ("metal-ipi:index:Artifacts", "artifacts"),
    ("metal-ipi:index:Removal", "bootstrap removed"),
)


def nodes_table(nodes: object, redact: Redactor) -> Table | None:
    """The stack's output `nodes` as a table; None if there is none."""
    if not isinstance(nodes, list) or not nodes:
        return None
    table = Table(title="nodes", title_justify="left", title_style="bold")
    for column in ("name", "role", "public", "private", "checks"):
        table.add_column(column, no_wrap=column != "checks")
    for item in cast("list[object]", nodes):
        if isinstance(item, dict):
            node = cast("dict[str, Any]", item)
            names = ("name", "role", "public_ipv4", "private_ipv4")
            table.add_row(*(redact(str(node.get(name) or "-")) for name in names), redact(checks(node.get("checks"))))
    return table


def checks(found: object) -> str:
    """A summary of a node's checks, with the names of those that did not pass: `ok 5/6; skipped: afterburn; failed:
    hostname (saw x)`."""
    if not isinstance(found, list):
        return "-"
    items = [cast("dict[str, Any]", item) for item in cast("list[object]", found) if isinstance(item, dict)]
    passed = [item for item in items if item.get("status") in {"ok", "passed"}]
    parts = [f"ok {len(passed)}/{len(items)}"]
    for status in ("failed", "skipped"):
        named = [item for item in items if item.get("status") == status]
        if named:
            parts.append(f"{status}: " + ", ".join(_named(item) for item in named))
    return "; ".join(parts)


def _named(item: dict[str, Any]) -> str:
    observed = item.get("observed")
    return f"{item.get('name')} ({observed})" if observed else str(item.get("name"))


def phases(progress: Progress) -> list[tuple[str, float, float]]:
    """Name, start and duration (seconds, from the first step) of each phase: each kind of resources, and each gate."""
    known = dict(_PHASES)
    spans: dict[str, tuple[float, float]] = {}
    for step in progress.steps.values():
        checks_nodes = is_check(step.type, urn_name(step.urn))
        name = step.title if step.is_gate else "node checks" if checks_nodes else known.get(step.type)
        if name is None or step.ended is None or step.op == "refresh":
            continue
        begin, end = spans.get(name, (step.started, step.ended))
        spans[name] = (min(begin, step.started), max(end, step.ended))
    zero = min((step.started for step in progress.steps.values()), default=0.0)
    rows = [(name, begin - zero, end - begin) for name, (begin, end) in spans.items()]
    return sorted(rows, key=lambda row: row[1])


def phases_table(progress: Progress) -> Table | None:
    """The phases as a table; None if there are none."""
    rows = phases(progress)
    if not rows:
        return None
    table = Table(title="times", title_justify="left", title_style="bold")
    table.add_column("phase")
    table.add_column("from", justify="right")
    table.add_column("took", justify="right")
    for name, begin, took in rows:
        table.add_row(name, f"{begin:.0f} s", f"{took:.0f} s")
    return table


def summary(operation: str, progress: Progress, seconds: float) -> str:
    """One line about the changes."""
    changed = progress.changed()
    unchanged = progress.changes.get("same", 0) + progress.changes.get("refresh", 0)
    if not changed:
        return f"{operation}: no changes ({unchanged} resources unchanged; {seconds:.0f} s)"
    counts = ", ".join(
        f"{count} to {op}" if operation == "preview" else f"{count} {DONE.get(op, op)}" for op, count in changed.items()
    )
    return f"{operation}: {counts}, {unchanged} unchanged ({seconds:.0f} s)"


def tell_failures(screen: Screen, operation: str, progress: Progress, otherwise: str) -> None:
    """Prints each failed resource once. `otherwise` is printed if the engine gave no reason."""
    failures = progress.failures()
    screen.line(f"\n{operation} failed:", style="bold red")
    for title, message in failures:
        lines = message.splitlines()
        first = f"{title}: {lines[0]}" if title else lines[0]
        screen.line("\n".join([f"  {first}", *(f"    {line}" for line in lines[1:])]), style="red")
    if not failures:
        screen.line(f"  {otherwise.strip()}", style="red")
