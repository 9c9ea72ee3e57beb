"""Checks whether a node is as expected: the script that runs on the node, and the parser of its output.

The script reads Ignition's result file, the platform id and consoles on the kernel command line, Afterburn's attributes
(compared with the platform's addresses), the host name, the OS version (compared with the stream), and an installed
node's generation marker.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

_LINES = [line.strip() for line in Path(__file__).with_name("node_check.sh").read_text().splitlines()]
_SCRIPT = "\n".join(line for line in _LINES if line and not line.startswith("#")) + "\n"
"""The script without comments and indentation."""
DIGEST = hashlib.sha256(_SCRIPT.encode()).hexdigest()[:16]
"""A digest of the script, so that a command notices its change."""
_STATUSES = frozenset({"passed", "failed", "skipped"})


class CheckOutputError(ValueError):
    """The output of a node check is malformed."""


def script_of(variables: Mapping[str, str]) -> str:
    """The shell script for a node: the expected values as variables, then the checks."""
    lines = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    return "\n".join(lines) + "\n" + _SCRIPT


def parse(output: str) -> list[dict[str, str]]:
    """The results in the output of a node check. Raises CheckOutputError if it is malformed."""
    results: list[dict[str, str]] = []
    for line in output.splitlines():
        parts: Sequence[str] = line.split("\t", 2)
        if len(parts) != 3 or parts[1] not in _STATUSES:
            raise CheckOutputError(f"a node check printed '{line}', which is not a check result")
        results.append({"name": parts[0], "status": parts[1], "observed": parts[2]})
    if not results:
        raise CheckOutputError("a node check printed nothing")
    return results
