"""The checks of a pool's nodes: one command for some nodes, which asks all of them over SSH.

A command for each node was three steps of the engine and 15 kB of state for each. In one command for many, what is the
same for all stands once, and the script, which is part of the library, by its digest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_command as command

from metal_ipi.components import drivers
from metal_ipi.components.checks import driver
from metal_ipi.components.checks.node_check import Expectation, variables
from metal_ipi.provider.node_check import DIGEST, parse
from metal_ipi.provider.types import Secret

TOGETHER = 25
"""Nodes of one command: so many are checked again when one of them has changed, or has failed."""
_OF_EACH = {"machine", "hostKey", *driver.OF_EACH}


@dataclass(frozen=True, kw_only=True)
class NodeCheckArgs:
    """One node to check."""

    expectation: pulumi.Input[Expectation]
    """What it must be; SSH answers at its public address."""
    machine_id: pulumi.Input[str]
    """The platform's id: another machine is checked anew."""
    host_key: pulumi.Input[str]
    """Its pinned host key."""


class NodeChecks:
    """The checks of some nodes: a `command.local.Command` that runs again when a machine or an expectation changes."""

    results: pulumi.Output[dict[str, list[dict[str, str]]]]
    """By the node's full name, `name`, `status` (passed, skipped) and `observed` of each check; one that failed fails
    the update."""

    def __init__(
        self,
        name: str,
        nodes: Sequence[NodeCheckArgs],
        private_key: pulumi.Input[Secret[str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`private_key` opens user `core` of all nodes; secret."""
        found = [pulumi.Output.all(node.expectation, node.machine_id, node.host_key) for node in nodes]
        create, directory = drivers.started(driver.__name__)
        self.resource = command.local.Command(
            name,
            create=create,
            dir=directory,
            stdin=pulumi.Output.all(*found).apply(request),
            environment={driver.KEY: pulumi.Output.secret(private_key)},
            logging=command.local.Logging.STDERR,
            # All that was read on many nodes is more than a variable may hold.
            add_previous_output_in_env=False,
            opts=opts,
        )
        # A secret among the inputs may make the provider call all outputs secret; what was read is none.
        self.results = pulumi.Output.unsecret(self.resource.stdout).apply(results)


def request(nodes: Sequence[tuple[Expectation, str, str]]) -> str:
    """What the driver is asked for, of each node what it must be, its machine's id and host key. JSON: `all` has the
    variables that are the same for all nodes, `own` the names of the others, and `nodes` their values for each node;
    `script` only stands for what is done."""
    each = [
        {"machine": machine, "hostKey": host_key, **variables(expectation)} for expectation, machine, host_key in nodes
    ]
    names = list(dict.fromkeys(name for found in each for name in found))
    own = [name for name in names if name in _OF_EACH or len({found.get(name) for found in each}) > 1]
    common = {name: text for name, text in each[0].items() if name not in own}
    values = [[found.get(name, "") for name in own] for found in each]
    return json.dumps({"script": DIGEST, "all": common, "own": own, "nodes": values}, separators=(",", ":"))


def results(text: str) -> dict[str, list[dict[str, str]]]:
    """What the driver printed, by node. Raises CheckOutputError for results that are none."""
    return {name: parse(lines) for name, lines in json.loads(text).items()}
