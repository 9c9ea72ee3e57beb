"""The findings of checks and the report of them. Pure data and text: no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Level = Literal["error", "warning", "ok"]
_LEVELS: tuple[Level, ...] = ("error", "warning", "ok")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One result of a check."""

    check: str = ""
    """The name of the check, by which a stack can override its errors. The runner of the checks sets it."""
    level: Level
    what: str
    """What was found, with the values concerned."""
    remedy: str = ""
    """What to do about it; empty if all is well."""
    host: str = ""
    """The name of the server that it is about; empty for none or several."""

    def __post_init__(self) -> None:
        if (self.level == "ok") == bool(self.remedy):
            raise ValueError(f"{self.check}: errors and warnings, and only these, have a remedy: {self.what}")

    def __str__(self) -> str:
        remedy = f"\n         remedy: {self.remedy}" if self.remedy else ""
        return f"{self.level:<8} {self.check}: {self.what}{remedy}"


def error(what: str, remedy: str) -> Finding:
    """A problem that must be corrected before anything is ordered."""
    return Finding(level="error", what=what, remedy=remedy)


def warning(what: str, remedy: str) -> Finding:
    """A problem that may turn out to be harmless."""
    return Finding(level="warning", what=what, remedy=remedy)


def ok(what: str) -> Finding:
    """All is well."""
    return Finding(level="ok", what=what)


@dataclass(frozen=True, kw_only=True)
class Report:
    """All findings about one stack."""

    findings: Sequence[Finding]
    told: Mapping[str, str] = field(default_factory=dict[str, str])
    """Server name to a table with its facts, for people. The first line names the server."""

    @property
    def errors(self) -> list[Finding]:
        """Findings that must be corrected before anything is ordered."""
        return [finding for finding in self.findings if finding.level == "error"]

    @property
    def warnings(self) -> list[Finding]:
        """Findings that may turn out to be harmless."""
        return [finding for finding in self.findings if finding.level == "warning"]

    def summary(self) -> str:
        """One line with the number of checks, errors and warnings."""
        counts = [
            f"{len(found)} {word}{'' if len(found) == 1 else 's'}"
            for found, word in ((self.errors, "error"), (self.warnings, "warning"))
            if found
        ]
        return f"{len({finding.check for finding in self.findings})} checks, {' and '.join(counts) or 'all is well'}"

    def problems(self) -> str:
        """All errors and warnings, errors first; those of servers are grouped by server."""
        wrong = [*self.errors, *self.warnings]
        servers = {name: f"{name}:" for name in self.told if any(each.host == name for each in wrong)}
        return "\n".join([*(str(each) for each in wrong if not each.host), *by_host(wrong, servers)])

    def __str__(self) -> str:
        findings = sorted(self.findings, key=lambda finding: _LEVELS.index(finding.level))
        general = [str(each) for each in findings if not each.host]
        return "\n".join([*by_host(findings, self.told), *general, self.summary()])


def by_host(findings: Iterable[Finding], told: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yields, per server, the text that `told` has for it and its findings, in the given order."""
    told = told or {}
    found = [finding for finding in findings if finding.host]
    for name in dict.fromkeys([*told, *(finding.host for finding in found)]):
        yield told.get(name, f"{name}:")
        for finding in found:
            if finding.host == name:
                yield from (f"  {line}" for line in str(finding).splitlines())


def overridden(findings: Iterable[Finding], reasons: Mapping[str, str], excused: Iterable[str] = ()) -> list[Finding]:
    """Turns the errors of some checks into warnings, because the user has decided to go on.

    Args:
        findings: the findings of all checks.
        reasons: check name to the reason, which the warnings show.
        excused: names of further checks, without a reason.
    """
    words = {**dict.fromkeys(excused, "excused"), **{name: f"overridden: {why}" for name, why in reasons.items()}}
    return [
        replace(each, level="warning", what=f"{each.what} ({words[each.check]})")
        if each.level == "error" and each.check in words
        else each
        for each in findings
    ]
