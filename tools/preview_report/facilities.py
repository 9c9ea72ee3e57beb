"""Finds the facilities that a change affects. Pure functions from file names to stack names."""

from __future__ import annotations

import re
from collections.abc import Collection

_STACK_FILE = re.compile(r"stacks/Pulumi\.([A-Za-z0-9_.-]+)\.yaml")
_POLICY = re.compile(r"policy/configuration/([A-Za-z0-9_.-]+)\.json")
_SHARED = re.compile(r"(components|metal_ipi|policy|provider|stacks)/.*|Pulumi\.yaml|requirements\.txt")
"""Files that affect every facility. Files of a single stack are recognized first."""


def stack_of(path: str) -> str | None:
    """The stack of a stack file; None for any other file."""
    match = _STACK_FILE.fullmatch(path)
    return match[1] if match else None


def changed(paths: Collection[str], stacks: Collection[str]) -> list[str]:
    """The existing stacks that a change of these files affects."""
    named: set[str] = set()
    for path in paths:
        policy = _POLICY.fullmatch(path)
        own = stack_of(path) or (policy[1] if policy else None)
        # all lab stacks use the policy configuration `lab`
        if own is not None and own in stacks and not (policy and own == "lab"):
            named.add(own)
        elif _SHARED.fullmatch(path):
            return sorted(stacks)
    return sorted(named)
