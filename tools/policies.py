"""Selects the policies for a run: the project's policy pack, with the configuration of the stack."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from tools import stackfile
from tools.errors import StackError
from tools.layout import Layout

OFF = "off"
NO_STATE = "METAL_IPI_NO_STATE"
"""Environment variable that tells the policy pack of a rehearsal, where no resource exists. Without it the pack asks
the engine, which takes 0.3 s."""
LEVELS = ("mandatory", "advisory", "disabled")


@dataclass(frozen=True, kw_only=True)
class Policies:
    """The policy packs and their configuration files for the engine; empty without policies."""

    packs: list[str]
    configurations: list[str]


def policies(layout: Layout) -> Policies:
    """The policy pack and its configuration. Raises StackError if POLICY is neither `on` nor `off`."""
    wanted = os.environ.get("POLICY") or "on"
    if wanted not in {"on", OFF}:
        raise StackError(
            f"POLICY is '{wanted}'",
            why="it turns the policies off",
            remedy=f"do not set it, or set it to {OFF}",
        )
    pack = layout.root / "policy"
    if wanted == OFF or not pack.is_dir():
        return Policies(packs=[], configurations=[])
    file = configuration(layout)
    _check(file)
    return Policies(packs=[str(pack)], configurations=[str(file)])


def configuration(layout: Layout) -> Path:
    """The configuration of the stack, else that of all lab stacks, else the default one."""
    directory = layout.root / "policy" / "configuration"
    own = directory / f"{layout.stack}.json"
    if own.exists():
        return own
    return directory / ("lab.json" if stackfile.is_lab(layout.stack_file) else "default.json")


def _check(file: Path) -> None:
    """Raises StackError for errors in a configuration. The engine's own message for an unknown rule is unclear."""
    # Not at the top: an old commit in a preview report may have no policies.
    from policy.rules.pack import RULES

    try:
        document: Any = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise StackError(
            f"the policy configuration {file} cannot be used", why=str(error), remedy="see docs/policy.md"
        ) from error
    if not isinstance(document, dict):
        raise StackError(f"the policy configuration {file} is not a JSON object", remedy="see docs/policy.md")
    parameters = {"all": {"enforcementLevel"}, **{r.name: {"enforcementLevel", *r.parameters} for r in RULES}}
    for rule, value in cast("dict[str, Any]", document).items():
        _refuse_unknown(file, f"there is no rule '{rule}'", rule, parameters)
        names: dict[str, Any] = (
            cast("dict[str, Any]", value) if isinstance(value, dict) else {"enforcementLevel": value}
        )
        for name in names:
            _refuse_unknown(file, f"the rule {rule} has no parameter '{name}'", name, parameters[rule])
        if (level := names.get("enforcementLevel", LEVELS[0])) not in LEVELS:
            raise StackError(
                f"the rule {rule} has the enforcement level {level!r}",
                why=f"{file} says so",
                remedy=f"use one of {', '.join(LEVELS)}",
            )


def _refuse_unknown(file: Path, problem: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        close = get_close_matches(name, names, 1)
        raise StackError(
            problem,
            why=f"{file} names it",
            remedy=f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(names))}",
        )
