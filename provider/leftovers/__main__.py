"""Finds and deletes what our stacks have left in projects.

Reads one JSON document from standard input, because it contains the token:

{"metal": {"authToken", "endpoint"?}, "list": [project id, ...], "projects": true} prints {"resources", "projects",
"others": project id → number of things in it that are not ours}; {"metal", "delete": [{"kind", "id"}, ...]} prints a
line {"kind", "id", "why"} for each finished one, and exits with status 1 if one of them is not gone. General errors go
to standard error, with status 2.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from typing import Any

from metal_ipi.provider import configuration
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.leftovers import inventory, removal
from metal_ipi.provider.leftovers.removal import Target
from metal_ipi.provider.metal_client import MetalClient

_PATIENCE = 300
"""How long the deletion of something busy is retried, in seconds; the request's "patience" overrides it."""
_REPEATED = 120
"""The longest time for which a failing call is repeated, in seconds."""


async def _run(request: dict[str, Any]) -> int:
    settings, problems = configuration.parse({"metal": request["metal"]})
    if problems:
        print("; ".join(f"{problem.path} {problem.reason}" for problem in problems), file=sys.stderr)
        return 2
    patience = float(request.get("patience", _PATIENCE))
    async with MetalClient(settings.need_metal(), timeout=min(patience, _REPEATED)) as client:
        if "delete" in request:
            targets = [Target(kind=item["kind"], id=item["id"]) for item in request["delete"]]
            return 0 if await removal.remove(client, targets, _tell, patience=patience) else 1
        found = {project: await inventory.inventory(client, project) for project in request["list"]}
        projects = await inventory.projects(client) if request.get("projects") else []
        parts = {"resources": [each for inside in found.values() for each in inside.ours], "projects": projects}
        answer: dict[str, Any] = {name: [*map(dataclasses.asdict, items)] for name, items in parts.items()}
        print(json.dumps({**answer, "others": {project: inside.others for project, inside in found.items()}}))
    return 0


def _tell(target: Target, why: str) -> None:
    print(json.dumps({**dataclasses.asdict(target), "why": why}), flush=True)


def main() -> int:
    """Process one request; see the module's docstring."""
    try:
        return asyncio.run(_run(json.load(sys.stdin)))
    except ProviderError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
