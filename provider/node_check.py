"""Is a node what it should be? The script that asks it, and what that prints.

What is read: Ignition's result file, the platform id and consoles on the kernel's command line, Afterburn's attributes
against the addresses the platform gave, the host name, the OS version against the stream, and what an installed node
says of its installation.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

_LINES = [line.strip() for line in Path(__file__).with_name("node_check.sh").read_text().splitlines()]
_SCRIPT = "\n".join(line for line in _LINES if line and not line.startswith("#")) + "\n"
"""Without what is only for its readers."""
DIGEST = hashlib.sha256(_SCRIPT.encode()).hexdigest()[:16]
"""Stands for the script where only a change of it counts."""
_STATUSES = frozenset({"passed", "failed", "skipped"})


class CheckOutputError(ValueError):
    """A node answered something that is no check result."""


def script_of(variables: Mapping[str, str]) -> str:
    """The shell script that checks a node: expectations as variables, then the checks."""
    lines = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    return "\n".join(lines) + "\n" + _SCRIPT


def parse(output: str) -> list[dict[str, str]]:
    """The checks a node printed. Raises CheckOutputError for anything else."""
    results: list[dict[str, str]] = []
    for line in output.splitlines():
        parts: Sequence[str] = line.split("\t", 2)
        if len(parts) != 3 or parts[1] not in _STATUSES:
            raise CheckOutputError(f"a node check printed '{line}', which is no check result")
        results.append({"name": parts[0], "status": parts[1], "observed": parts[2]})
    if not results:
        raise CheckOutputError("a node check printed nothing")
    return results
