"""What checks find, and how it is told. Pure data and text: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Level = Literal["error", "warning", "ok"]
_LEVELS: tuple[Level, ...] = ("error", "warning", "ok")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a check found out."""

    check: str
    """The check's name, by which a stack may take its errors for warnings."""
    level: Level
    what: str
    """What is so, with the values concerned."""
    remedy: str = ""
    """What to do about it; empty when all is well."""

    def __post_init__(self) -> None:
        if (self.level == "ok") == bool(self.remedy):
            raise ValueError(f"{self.check}: what is wrong names its remedy, and only that: {self.what}")

    def mapped(self, text: Callable[[str], str]) -> Finding:
        """The same with its texts changed."""
        return replace(self, what=text(self.what), remedy=text(self.remedy))

    def __str__(self) -> str:
        lines = [f"{self.level:<8} {self.check}: {self.what}"]
        return "\n".join([*lines, *([f"         remedy: {self.remedy}"] if self.remedy else [])])


@dataclass(frozen=True, kw_only=True)
class Report:
    """All findings about one stack."""

    findings: Sequence[Finding]

    @property
    def errors(self) -> list[Finding]:
        """What must be corrected before anything is ordered."""
        return self._of("error")

    @property
    def warnings(self) -> list[Finding]:
        """What may go well."""
        return self._of("warning")

    @property
    def checks(self) -> int:
        """How many checks there were."""
        return len({finding.check for finding in self.findings})

    def _of(self, level: Level) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == level]

    def summary(self) -> str:
        """One line."""
        counts = [
            f"{len(found)} {word}{'' if len(found) == 1 else 's'}"
            for found, word in ((self.errors, "error"), (self.warnings, "warning"))
            if found
        ]
        return f"{self.checks} checks, {' and '.join(counts) or 'all is well'}"

    def problems(self) -> str:
        """Everything that is wrong, errors first."""
        return "\n".join(map(str, [*self.errors, *self.warnings]))

    def __str__(self) -> str:
        return "\n".join([*(str(finding) for level in _LEVELS for finding in self._of(level)), self.summary()])


def excused(findings: Iterable[Finding], names: Iterable[str]) -> list[Finding]:
    """The errors of the checks named become warnings: somebody knows better than the check does."""
    known = frozenset(names)
    return [
        replace(each, level="warning", what=f"{each.what} (excused)")
        if each.level == "error" and each.check in known
        else each
        for each in findings
    ]
