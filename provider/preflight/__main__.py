"""Prints the report about a stack, and ends with status 1 when there are errors.

Reads one JSON document from standard input, because it holds secrets: {"config": the provider's configuration,
"inputs": those of the resource Preflight, "again"?: whether the stack has passed before}. With input that is not that
it ends with status 2.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from provider import configuration
from provider.preflight import inputs as plans
from provider.preflight import running


def main() -> int:
    """One report."""
    request: dict[str, Any] = json.load(sys.stdin)
    settings, problems = configuration.parse(request["config"])
    plan, reader = plans.read(request["inputs"])
    if problems or reader.problems:
        wrong = [*problems, *reader.problems]
        print("\n".join(f"{problem.path} {problem.reason}" for problem in wrong), file=sys.stderr)
        return 2
    report = asyncio.run(running.run(plan, settings, again=request.get("again", False)))
    print(report)
    return 1 if report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
