"""Settings of earlier versions: still accepted, with a warning that says what to write instead."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from metal_ipi.stacks.platforms.section import Tree, at
from metal_ipi.stacks.problems import NAMESPACE

_RENAMED = {"platform.reservations.workers": "platform.reservations.worker"}
"""The path of an old setting → its new path; both are in the same section."""


def current(tree: dict[str, Any]) -> tuple[dict[str, Any], Sequence[str]]:
    """Convert an unvalidated tree to this version's settings; also returns a warning for each outdated setting."""
    tree, warnings = copy.deepcopy(tree), list[str]()
    for old, new in _RENAMED.items():
        section, name = old.rpartition(".")[0], new.rpartition(".")[2]
        where = at(tree, section)
        if isinstance(where, dict) and old.rpartition(".")[2] in where and name not in where:
            where[name] = where.pop(old.rpartition(".")[2])
            warnings.append(f"{NAMESPACE}:{old} is called {NAMESPACE}:{new} now; rename it in the stack file")
    for path, value in _said_by_lab(tree):
        section, _, name = path.rpartition(".")
        (tree.setdefault(section, {}) if section else tree)[name] = value
        warnings.append(
            f"{NAMESPACE}:{path} no longer follows from {NAMESPACE}:lab; add `{path}: {str(value).lower()}` to the"
            " stack file"
        )
    return tree, warnings


def _said_by_lab(tree: Tree) -> list[tuple[str, bool]]:
    """Settings that earlier versions derived from the presence of section `lab`."""
    if not isinstance(tree.get("lab"), dict):
        return []
    boot = tree.get("boot", {})
    missing = isinstance(boot, dict) and boot.get("install") is None and "diskless" not in boot
    orders = at(tree, "platform.type") == "equinix-metal"
    return [
        *([("protect", False)] if tree.get("protect") is None else []),
        *([("boot.diskless", True)] if missing and orders else []),
    ]
