"""What checks find, and how it is told. Pure data and text: no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Level = Literal["error", "warning", "ok"]
_LEVELS: tuple[Level, ...] = ("error", "warning", "ok")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a check found out."""

    check: str = ""
    """The check's name, by which a stack may take its errors for warnings. Whoever runs the check fills it in."""
    level: Level
    what: str
    """What is so, with the values concerned."""
    remedy: str = ""
    """What to do about it; empty when all is well."""
    host: str = ""
    """The server that it is of, as the stack calls it; empty: it is of no server, or of several."""

    def __post_init__(self) -> None:
        if (self.level == "ok") == bool(self.remedy):
            raise ValueError(f"{self.check}: what is wrong names its remedy, and only that: {self.what}")

    def __str__(self) -> str:
        remedy = f"\n         remedy: {self.remedy}" if self.remedy else ""
        return f"{self.level:<8} {self.check}: {self.what}{remedy}"


def error(what: str, remedy: str) -> Finding:
    """Nothing may be ordered as long as this is so."""
    return Finding(level="error", what=what, remedy=remedy)


def warning(what: str, remedy: str) -> Finding:
    """This may go well."""
    return Finding(level="warning", what=what, remedy=remedy)


def ok(what: str) -> Finding:
    """All is well."""
    return Finding(level="ok", what=what)


@dataclass(frozen=True, kw_only=True)
class Report:
    """All findings about one stack."""

    findings: Sequence[Finding]
    told: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is known of each server, by its name: a table for people, whose first line says which it is."""

    @property
    def errors(self) -> list[Finding]:
        """What must be corrected before anything is ordered."""
        return [finding for finding in self.findings if finding.level == "error"]

    @property
    def warnings(self) -> list[Finding]:
        """What may go well."""
        return [finding for finding in self.findings if finding.level == "warning"]

    def summary(self) -> str:
        """One line."""
        counts = [
            f"{len(found)} {word}{'' if len(found) == 1 else 's'}"
            for found, word in ((self.errors, "error"), (self.warnings, "warning"))
            if found
        ]
        return f"{len({finding.check for finding in self.findings})} checks, {' and '.join(counts) or 'all is well'}"

    def problems(self) -> str:
        """Everything that is wrong, errors first; of servers, server by server."""
        wrong = [*self.errors, *self.warnings]
        servers = {name: f"{name}:" for name in self.told if any(each.host == name for each in wrong)}
        return "\n".join([*(str(each) for each in wrong if not each.host), *by_host(wrong, servers)])

    def __str__(self) -> str:
        findings = sorted(self.findings, key=lambda finding: _LEVELS.index(finding.level))
        general = [str(each) for each in findings if not each.host]
        return "\n".join([*by_host(findings, self.told), *general, self.summary()])


def by_host(findings: Iterable[Finding], told: Mapping[str, str] | None = None) -> Iterator[str]:
    """A part for each server: what is `told` of it, and what is wrong, in the order of the findings."""
    told = told or {}
    found = [finding for finding in findings if finding.host]
    for name in dict.fromkeys([*told, *(finding.host for finding in found)]):
        yield told.get(name, f"{name}:")
        for finding in found:
            if finding.host == name:
                yield from (f"  {line}" for line in str(finding).splitlines())


def overridden(findings: Iterable[Finding], reasons: Mapping[str, str], excused: Iterable[str] = ()) -> list[Finding]:
    """The errors of some checks become warnings, because somebody knows better than the check does.

    Args:
        findings: of all checks.
        reasons: why, by the check's name; the warnings tell it.
        excused: names of further checks, without a reason.
    """
    words = {**dict.fromkeys(excused, "excused"), **{name: f"overridden: {why}" for name, why in reasons.items()}}
    return [
        replace(each, level="warning", what=f"{each.what} ({words[each.check]})")
        if each.level == "error" and each.check in words
        else each
        for each in findings
    ]
