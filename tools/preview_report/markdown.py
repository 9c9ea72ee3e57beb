"""Writes a comparison as Markdown. Pure functions from data to text.

The author of a pull request controls much of this text, so it is either put into code blocks that it cannot close, or
escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tools.preview_report.changes import Change, changes
from tools.preview_report.rehearsal import Rehearsal

LONGEST = 60_000
"""Maximum length in characters; a comment on GitHub has at most 65,536."""
_SIGNS = {"added": "+", "removed": "-", "changed": "!"}
_LONGEST_VALUE = 200


@dataclass(frozen=True, kw_only=True)
class Facility:
    """One facility, before and after the change."""

    stack: str
    before: Rehearsal | None
    """None: the facility did not exist."""
    after: Rehearsal | None
    """None: the facility no longer exists."""

    @property
    def pictures(self) -> dict[str, str]:
        """File name to SVG document."""
        sides = {"before": self.before, "after": self.after}
        return {f"{self.stack}-{name}.svg": side.picture for name, side in sides.items() if side and side.picture}


def report(facilities: Sequence[Facility], base: str, *, pictures: str = "") -> str:
    """The whole report. `pictures`: URL of the directory with the pictures, with a trailing slash."""
    head = [f"## What this changes, compared with `{_code(base)}`", ""]
    if not facilities:
        return "\n".join([*head, "No facility is touched.", ""])
    found = {each.stack: changes(each.before, each.after) for each in facilities}
    table = [
        "| facility | resources | cost | policies |",
        "|---|---|---|---|",
        *(_row(each, found[each.stack]) for each in facilities),
        "",
    ]
    parts = ["\n".join([*head, *table])]
    room = LONGEST - len(parts[0])
    for index, each in enumerate(facilities):
        share = room // (len(facilities) - index)
        parts.append(_section(each, found[each.stack], share, pictures))
        room -= len(parts[-1])
    return "\n".join(parts)


def _row(facility: Facility, found: Sequence[Change]) -> str:
    cells = (f"**{_text(facility.stack)}**", _count(facility, found), _cost(facility), _verdict(facility.after))
    return f"| {' | '.join(cells)} |"


def _count(facility: Facility, found: Sequence[Change]) -> str:
    if facility.after is not None and facility.after.problems:
        return "no preview"
    counts = Counter(change.kind for change in found)
    parts = [f"{counts[kind]} {kind}" for kind in ("added", "changed", "removed") if counts[kind]]
    new = "new facility: " if facility.before is None else "gone: " if facility.after is None else ""
    return new + (", ".join(parts) or "none changed")


def _cost(facility: Facility) -> str:
    before, after = (_hourly(side) for side in (facility.before, facility.after))
    if before is None and after is None:
        return "not known"
    text = " → ".join("not known" if value is None else f"{value:.2f}" for value in (before, after))
    if before is not None and after is not None:
        return f"{after:.2f} USD/h" if before == after else f"{text} USD/h ({after - before:+.2f})"
    return f"{text} USD/h"


def _hourly(side: Rehearsal | None) -> float | None:
    if side is None:
        return 0.0
    value = side.cost.get("hourlyAtMost", side.cost.get("hourly"))
    return float(value) if isinstance(value, int | float) else None


def _verdict(after: Rehearsal | None) -> str:
    if after is None:
        return "not asked"
    if after.problems:
        return "❌ the preview fails"
    if after.forbidden:
        return f"❌ refused: {', '.join(sorted(after.forbidden))}"
    return f"⚠️ advice: {', '.join(sorted(after.advice))}" if after.advice else "✅ kept"


def _section(facility: Facility, found: Sequence[Change], room: int, pictures: str) -> str:
    lines = [f"### {_text(facility.stack)}", ""]
    after = facility.after
    if after is not None:
        if after.problems:
            lines += ["The preview fails:", "", *_block("text", after.problems), ""]
        for title, rules in (("refused", after.forbidden), ("advised against", after.advice)):
            if rules:
                messages = [f"{rule}: {message}" for rule in sorted(rules) for message in rules[rule]]
                lines += [f"By policy {title}:", "", *_block("text", messages), ""]
    if shown := [name for name in ("before", "after") if f"{facility.stack}-{name}.svg" in facility.pictures]:
        cells = [f'<img alt="{name}" src="{pictures}{_text(facility.stack)}-{name}.svg">' for name in shown]
        lines += [f"| {' | '.join(shown)} |", f"|{'---|' * len(shown)}", f"| {' | '.join(cells)} |", ""]
    if found:
        lines += ["<details><summary>What changes</summary>", ""]
        lines += [*_diff(found, room - sum(len(line) + 1 for line in lines) - 100), "", "</details>", ""]
    return "\n".join(lines)


def _diff(found: Sequence[Change], room: int) -> list[str]:
    shown: list[str] = []
    for number, change in enumerate(found):
        each = [f"{_SIGNS[change.kind]} {change.name} ({change.type})"]
        for path, old, new in change.lines:
            each += [f"-   {path}: {_short(old)}"] if old else []
            each += [f"+   {path}: {_short(new)}"] if new else []
        each = [_code(line) for line in each]
        room -= sum(len(line) + 1 for line in each)
        if room < 0:
            shown.append(f"  ... and {len(found) - number} more resources, which are too many for a comment")
            break
        shown += each
    return ["```diff", *shown, "```"]


def _block(language: str, texts: Sequence[str]) -> list[str]:
    return [f"```{language}", *(_code(line) for text in texts for line in text.splitlines()), "```"]


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= _LONGEST_VALUE else f"{line[:_LONGEST_VALUE]}... ({len(value)} characters)"


def _code(text: str) -> str:
    """Text without backticks, so that it cannot close its code block."""
    return text.replace("`", "'")


def _text(text: str) -> str:
    """Text without any markup."""
    return re.sub(r"[^A-Za-z0-9_. -]", "?", text)
