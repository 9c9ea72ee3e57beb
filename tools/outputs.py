"""Reads a stack's outputs from the engine."""

from __future__ import annotations

import json
from typing import Any

from tools import stackfile
from tools.automation import EngineCommand
from tools.engine import Engine
from tools.errors import StackError
from tools.layout import Layout
from tools.project import environment, has_own_passphrase, write_project

_BETWEEN_STACKS = "forPools"
"""Prefix of outputs that are only for the stacks of pools."""


def existing(layout: Layout) -> None:
    """Raises StackError if the stack does not exist."""
    if not layout.exists:
        raise StackError(
            f"there is no stack '{layout.stack}'",
            why=f"it was never brought up here: {layout.state} contains no state",
            remedy=f"bring it up with `make up STACK={layout.stack}`",
        )


def outputs(layout: Layout, engine: Engine, *, secrets: bool = False) -> str:
    """All outputs as one JSON document, with secrets masked or in clear. Raises StackError if the stack does not
    exist."""
    existing(layout)
    is_lab = stackfile.is_lab(layout.stack_file)
    write_project(layout, with_stand_ins=is_lab)
    own = is_lab or not has_own_passphrase()
    command = EngineCommand(engine, environment(layout, engine, own_passphrase=own, acquire_plugins=False))
    options = ["--show-secrets"] if secrets else []
    return command.text(["stack", "output", "--json", *options, "--stack", layout.stack], layout.project)


def of_facility(layout: Layout, engine: Engine) -> str:
    """The outputs of all stacks of a facility, with secrets masked: the cluster's, with the nodes of all stacks, and
    each pool's. Raises StackError if the stack does not exist."""
    found: dict[str, Any] = json.loads(outputs(layout, engine))
    found = {name: value for name, value in found.items() if not name.startswith(_BETWEEN_STACKS)}
    pools = {pool: json.loads(outputs(layout.of_pool(pool), engine)) for pool in layout.pools}
    if pools:
        found["nodes"] = [*found.get("nodes", ()), *(node for each in pools.values() for node in each.get("nodes", ()))]
        found["pools"] = pools
    return json.dumps(found, indent=2)
