"""The checks of a pool's nodes: one command checks several nodes over SSH.

One command for each node took three steps of the engine and 15 kB of state per node. A command for many nodes stores
values that are the same for all nodes once, and the script (part of this library) only by its digest.
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
from metal_ipi.components.waiting import coming_from
from metal_ipi.provider.node_check import DIGEST, parse
from metal_ipi.provider.types import Secret

TOGETHER = 25
"""Nodes per command. All of them are checked again when one of them changes or fails."""
_OF_EACH = {"machine", "hostKey", *driver.OF_EACH}


@dataclass(frozen=True, kw_only=True)
class NodeCheckArgs:
    """One node to check."""

    expectation: pulumi.Input[Expectation]
    """What it must be; SSH is tried at its public address."""
    machine_id: pulumi.Input[str]
    """The platform's id of the machine: another machine is checked again."""
    host_key: pulumi.Input[str]
    """Its pinned host key."""


class NodeChecks:
    """The checks of some nodes: a `command.local.Command` that runs again when a machine or an expectation changes."""

    results: pulumi.Output[dict[str, list[dict[str, str]]]]
    """Full node name → list of checks, each with `name`, `status` (passed, skipped) and `observed`. A failed check
    fails the update."""

    def __init__(
        self,
        name: str,
        nodes: Sequence[NodeCheckArgs],
        private_key: pulumi.Input[Secret[str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`private_key` is the SSH key of user `core` on all nodes; secret."""
        found = [pulumi.Output.all(node.expectation, node.machine_id, node.host_key) for node in nodes]
        create, directory = drivers.started(driver.__name__)
        self.resource = command.local.Command(
            name,
            create=create,
            dir=directory,
            # It comes after the gate that waits for these nodes, and that one after their machines.
            stdin=coming_from(pulumi.Output.all(*found).apply(request)),
            environment={driver.KEY: pulumi.Output.secret(private_key)},
            logging=command.local.Logging.STDERR,
            # The output for many nodes can be larger than an environment variable may be.
            add_previous_output_in_env=False,
            opts=opts,
        )
        # A secret input may make the provider mark all outputs secret; the results contain no secret.
        self.results = pulumi.Output.unsecret(self.resource.stdout).apply(results)


def request(nodes: Sequence[tuple[Expectation, str, str]]) -> str:
    """The driver's request, as JSON. For each node: its expectation, its machine's id, its host key.

    `all` has the variables that are the same for all nodes, `own` the names of the others, and `nodes` their values for
    each node. `script` is the digest of the check script, so that the command runs again when the script changes.
    """
    each = [
        {"machine": machine, "hostKey": host_key, **variables(expectation)} for expectation, machine, host_key in nodes
    ]
    names = list(dict.fromkeys(name for found in each for name in found))
    own = [name for name in names if name in _OF_EACH or len({found.get(name) for found in each}) > 1]
    common = {name: text for name, text in each[0].items() if name not in own}
    values = [[found.get(name, "") for name in own] for found in each]
    return json.dumps({"script": DIGEST, "all": common, "own": own, "nodes": values}, separators=(",", ":"))


def results(text: str) -> dict[str, list[dict[str, str]]]:
    """Parse the driver's output, by node. Raises CheckOutputError if a result is malformed."""
    return {name: parse(lines) for name, lines in json.loads(text).items()}
