"""Prints the report about a stack, and exits with status 1 if there are errors.

Reads one JSON document from standard input, because it contains secrets: {"config": the provider's configuration,
"inputs": those of the resource Preflight, "again"?: whether the stack has passed before}. For malformed input the
status is 2.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from metal_ipi.provider import configuration
from metal_ipi.provider.preflight import running
from metal_ipi.provider.preflight.plan import Plan


def main() -> int:
    """Print one report."""
    request: dict[str, Any] = json.load(sys.stdin)
    settings, problems = configuration.parse(request["config"])
    wrong = [*problems, *Plan.problems(request["inputs"])]
    if wrong:
        print("\n".join(f"{problem.path} {problem.reason}" for problem in wrong), file=sys.stderr)
        return 2
    report = asyncio.run(running.run(Plan.read(request["inputs"]), settings, again=request.get("again", False)))
    print(report)
    return 1 if report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
