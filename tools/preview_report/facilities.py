"""Which facilities a change is about. Pure functions from the names of files to the names of stacks."""

from __future__ import annotations

import re
from collections.abc import Collection

_STACK_FILE = re.compile(r"stacks/Pulumi\.([A-Za-z0-9_.-]+)\.yaml")
_POLICY = re.compile(r"policy/configuration/([A-Za-z0-9_.-]+)\.json")
_SHARED = re.compile(r"(components|metal_ipi|policy|provider|stacks)/.*|Pulumi\.yaml|requirements\.txt")
"""What every facility is made of; a stack's own file is told apart before."""


def stack_of(path: str) -> str | None:
    """The stack whose file this is."""
    match = _STACK_FILE.fullmatch(path)
    return match[1] if match else None


def changed(paths: Collection[str], stacks: Collection[str]) -> list[str]:
    """The stacks that a change of these files is about, of those that there are before or after it."""
    named: set[str] = set()
    for path in paths:
        policy = _POLICY.fullmatch(path)
        own = stack_of(path) or (policy[1] if policy else None)
        if own is not None and own in stacks and not (policy and own == "lab"):  # which all stacks of the lab have
            named.add(own)
        elif _SHARED.fullmatch(path):
            return sorted(stacks)
    return sorted(named)
