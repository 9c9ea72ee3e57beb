"""A stack's outputs, as the engine prints them."""

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
"""What the names of outputs begin with that only the stacks of pools read."""


def existing(layout: Layout) -> None:
    """Raises StackError when nothing was made of the stack."""
    if not layout.exists:
        raise StackError(
            f"there is no stack '{layout.stack}'",
            why=f"nothing was made of it here: {layout.state} holds no state",
            remedy=f"`make up STACK={layout.stack}` makes it",
        )


def outputs(layout: Layout, engine: Engine, *, secrets: bool = False) -> str:
    """All outputs as one JSON document, secrets masked or in clear. Raises StackError when there is no such stack."""
    existing(layout)
    is_lab = stackfile.is_lab(layout.stack_file)
    write_project(layout, with_stand_ins=is_lab)
    own = is_lab or not has_own_passphrase()
    command = EngineCommand(engine, environment(layout, engine, own_passphrase=own, acquire_plugins=False))
    options = ["--show-secrets"] if secrets else []
    return command.text(["stack", "output", "--json", *options, "--stack", layout.stack], layout.project)


def of_facility(layout: Layout, engine: Engine) -> str:
    """The outputs of a facility's stacks, secrets masked: the cluster's, with the nodes of all, and each pool's. Raises
    StackError when there is no such stack."""
    found: dict[str, Any] = json.loads(outputs(layout, engine))
    found = {name: value for name, value in found.items() if not name.startswith(_BETWEEN_STACKS)}
    pools = {pool: json.loads(outputs(layout.of_pool(pool), engine)) for pool in layout.pools}
    if pools:
        found["nodes"] = [*found.get("nodes", ()), *(node for each in pools.values() for node in each.get("nodes", ()))]
        found["pools"] = pools
    return json.dumps(found, indent=2)
