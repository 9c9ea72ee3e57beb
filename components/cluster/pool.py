"""A pool: machines of one role, each with a pinned host key and a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pulumi

from metal_ipi.components.boot.host_keys import KeyType, host_key
from metal_ipi.components.checks.node_check import Expectation
from metal_ipi.components.checks.pool_check import TOGETHER, NodeCheckArgs, NodeChecks
from metal_ipi.components.machines.contract import Boot, LastingMachine, Machine, MachineArgs, Platform
from metal_ipi.components.machines.node import Node, Role
from metal_ipi.components.waiting import coming_from
from metal_ipi.provider.types import Gate, GateArgs, GateLogs, GateNode, SshReachable


@dataclass(frozen=True, kw_only=True)
class Access:
    """How nodes are reached over SSH."""

    private_key: pulumi.Output[str]
    """The private key of user `core`; secret."""
    host_key_seed: pulumi.Output[str]
    """The seed from which host keys are derived; secret."""
    log_directory: str
    """The directory for the logs of failed gates; an absolute path."""
    host_key_type: KeyType = "ed25519"
    """The type of host keys."""

    def public_host_key(self, identity: str) -> pulumi.Output[str]:
        """The public host key of a node (by its full name) or of a live system. Not secret."""
        kind = self.host_key_type
        return pulumi.Output.unsecret(self.host_key_seed.apply(lambda seed: host_key(seed, identity, kind).public_key))

    def logs(self, nodes: Mapping[Node, Machine], *, comes_from_them: bool = True) -> GateLogs:
        """What a gate gathers when it fails.

        `comes_from_them`: whether the state is to say that the gate comes from the machines, twice for each; else it
        has to depend on them in another way, or its place in the order of deletion does not matter.
        """
        told: Callable[[pulumi.Input[str]], pulumi.Input[str]] = (lambda it: it) if comes_from_them else coming_from
        return GateLogs(
            nodes=[
                GateNode(
                    name=node.fqdn,
                    address=told(machine.public_ipv4),
                    host_key=told(self.public_host_key(node.fqdn)),
                    machine_id=told(machine.machine_id),
                    console=told(machine.console),
                    ipv6=machine.ipv6,
                )
                for node, machine in nodes.items()
            ],
            user="core",
            private_key=self.private_key,
            directory=self.log_directory,
        )


@dataclass(frozen=True, kw_only=True)
class NodePoolArgs:
    """The machines of a pool, and what they boot."""

    platform: Platform
    """The platform that provides them."""
    role: Role
    """`control-plane`, `arbiter` or `worker`."""
    nodes: tuple[Node, ...]
    """The machines, all of this role."""
    boots: Mapping[Node, Boot]
    """What each machine boots, and what configures it."""
    active_timeout: int
    """Seconds until the platform must report a machine as active."""
    announces: bool = False
    """Whether the machines announce addresses over BGP."""
    disposable: bool = False
    """Whether the machines hold no data to keep, so that they are replaced when what they boot changes."""


class NodePool(pulumi.ComponentResource):
    """The machines of one role; all are ordered at once, and wait for their boot files."""

    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:cluster:NodePool", name, None, opts)
        self.role: Role = args.role
        self.machines: dict[Node, LastingMachine] = {
            node: args.platform.machine(
                node.hostname,
                MachineArgs(
                    node=node,
                    boot=args.boots[node],
                    timeout=args.active_timeout,
                    announces=args.announces,
                    disposable=args.disposable,
                ),
                pulumi.ResourceOptions(parent=self),
            )
            for node in args.nodes
        }
        self.register_outputs({"nodes": [node.fqdn for node in self.machines]})

    @property
    def addresses(self) -> dict[str, pulumi.Input[str]]:
        """Public IPv4 by full node name."""
        return {node.fqdn: machine.public_ipv4 for node, machine in self.machines.items()}


@dataclass(frozen=True, kw_only=True)
class PoolChecksArgs:
    """Which nodes are checked against what."""

    pool: NodePool
    """The nodes."""
    access: Access
    """How they are reached over SSH."""
    expectations: Mapping[Node, pulumi.Input[Expectation]]
    """What each node must be."""
    timeout: int
    """Seconds until every node must answer SSH."""
    after: Sequence[pulumi.Resource] = ()
    """Resources to wait for before nodes can answer: their installation to disk."""


class PoolChecks(pulumi.ComponentResource):
    """One gate that waits until all nodes of a pool answer SSH, then the checks, several nodes per command."""

    nodes: pulumi.Output[list[dict[str, object]]]
    """For each node `name`, `role`, `public_ipv4`, `private_ipv4`, with dual stack `ipv6`, and `checks`."""

    def __init__(self, name: str, args: PoolChecksArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:cluster:PoolChecks", name, None, opts)
        machines = args.pool.machines
        self.reachable_gate = f"{name}-reachable"
        """The name of the gate that waits for the nodes."""
        self.reachable: pulumi.Resource = Gate(
            self.reachable_gate,
            GateArgs(
                spec=SshReachable(logs=args.access.logs(machines, comes_from_them=False)),
                timeout_seconds=args.timeout,
                aborts=args.pool.role != "worker",
            ),
            pulumi.ResourceOptions(
                depends_on=[*args.after, *(machine.resource for machine in machines.values())], parent=self
            ),
        )
        together = dict[int, list[Node]]()
        for node in machines:
            together.setdefault(node.number // TOGETHER, []).append(node)
        checks = {
            number: NodeChecks(
                f"{name}-{number}",
                [
                    NodeCheckArgs(
                        expectation=args.expectations[node],
                        machine_id=machines[node].machine_id,
                        host_key=args.access.public_host_key(node.fqdn),
                    )
                    for node in nodes
                ],
                args.access.private_key,
                pulumi.ResourceOptions(depends_on=[self.reachable], parent=self),
            )
            for number, nodes in together.items()
        }
        self.passed: list[pulumi.Resource] = [each.resource for each in checks.values()]
        """Depend on these to come after all checks."""
        summaries = [_summary(node, machines[node], checks[node.number // TOGETHER]) for node in machines]
        self.nodes = pulumi.Output.all(*summaries).apply(list)
        # Only the names. The results are an output of the stack, and stored in the state of each check.
        self.register_outputs({"nodes": [node.fqdn for node in machines]})


def _summary(node: Node, machine: Machine, checks: NodeChecks) -> pulumi.Output[dict[str, object]]:
    return pulumi.Output.all(
        name=node.fqdn,
        role=node.role,
        public_ipv4=machine.public_ipv4,
        private_ipv4=machine.private_ipv4,
        **({"ipv6": machine.ipv6} if machine.ipv6 else {}),
        # With `--target` the command may keep its output from before a node was added; and a preview does not know the
        # output when its stdin changes (pulumi-go-provider, infer/resource.go, markComputed).
        checks=checks.results.apply(lambda found: found.get(node.fqdn, [])),
    )
