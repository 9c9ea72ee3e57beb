"""The configuration of a run: a stack file with what the lab adds to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from tools import stackfile
from tools.engine import Engine
from tools.errors import StackError
from tools.facility import Facility
from tools.layout import Layout
from tools.outputs import outputs
from tools.project import has_own_passphrase


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The configuration of a run."""

    settings: stackfile.Config
    """What the engine reads, and the lab's secrets."""
    own_passphrase: bool
    """Whether the stack's own passphrase encrypts its secrets, and not one that the user has set."""
    facts: dict[str, Any] | None
    """The facts of the lab; None if the stack is not in the lab."""


def configure(layout: Layout, engine: Engine) -> RunConfig:
    """The configuration of a stack. Raises StackError if its secrets cannot be decrypted."""
    document = stackfile.of_pool(stackfile.read(layout.stack_file), layout.pool)
    if stackfile.lab_machines(document) is None:
        facts, own = None, not has_own_passphrase()
        settings = stackfile.for_facility(document)
    else:
        facts, own = Facility(layout=layout).facts(), True
        settings = _for_lab(layout, engine, document, facts)
    if own and stackfile.has_secrets(document):
        raise StackError(
            f"the secrets of stack '{layout.stack}' cannot be decrypted",
            why=f"stacks/{layout.stack_file.name} contains encrypted values, and no passphrase is set",
            remedy="set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE",
        )
    return RunConfig(settings=settings, own_passphrase=own, facts=facts)


def _for_lab(layout: Layout, engine: Engine, document: stackfile.Tree, facts: dict[str, Any]) -> stackfile.Config:
    """The stack file with the lab's additions."""
    facility = Facility(layout=layout)
    if stackfile.is_hub(document):
        return stackfile.for_lab_hub(document, facility.hub_facts(), facts)
    if stackfile.is_managed(document):
        return stackfile.for_lab(document, facts, kubeconfig=facility.hub_facts()["kubeconfig"])
    name = stackfile.hub_of(document)
    if name is None:
        return stackfile.for_lab(document, facts)
    # the hub's state is at its usual place, also if this command uses a temporary state
    hub = replace(layout, stack=name, states=None)
    return stackfile.for_lab(document, facts, json.loads(outputs(hub, engine, secrets=True)))
