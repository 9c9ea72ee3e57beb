"""The machines of a pool, installed to their disks; installed again, in turn, when what they are to run changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from components.cluster.pool import Access, NodePool
from components.machines.node import Node
from provider.types import (
    ArtifactsPlace,
    ClusterCredentials,
    Installation,
    InstallationArgs,
    InstalledSystemArgs,
    LiveSystemArgs,
)


@dataclass(frozen=True, kw_only=True)
class MachineInstallation:
    """What one machine is to run, and what installs it."""

    generation: pulumi.Input[str]
    """Stands for all it runs."""
    runs: InstalledSystemArgs
    """The same, for people."""
    live: LiveSystemArgs
    """The live system that installs it."""
    live_host_key: pulumi.Input[str]
    """The pinned SSH host key of that."""
    places: Sequence[ArtifactsPlace]
    """The uploaded files of its installer: deleted once it is installed."""
    mac: str | None = None
    """Of the interface that boots, where the site's boot tree is used."""
    script: pulumi.Input[str] | None = None
    """Its iPXE script; secret."""
    chain: str | None = None
    """The boot tree's first script."""
    user_data: pulumi.Input[str] | None = None
    """Where the platform hands it over."""
    ipxe_script_url: pulumi.Input[str] | None = None
    """Where the platform chains to it."""
    accept: str = "empty"
    """`wipe` where whatever is on it may go."""
    check: pulumi.Input[str] | None = None
    """A script that tells on the node whether it is what it should be."""
    after: Sequence[pulumi.Resource] = ()
    """What must be done before: its server may be lent."""


@dataclass(frozen=True, kw_only=True)
class Reprovisioning:
    """How machines of a pool are installed again."""

    max_unavailable: int
    """How many at once."""
    consent: frozenset[str] = frozenset()
    """The control plane machines that may be, as settings call them."""
    keep: bool = False
    """Whether the others stay as they are, with a warning; else they are refused."""
    drain_timeout: int = 600
    """Seconds until all pods must have left a node."""
    pre_reboot_commands: Sequence[str] = ()
    """Shell commands, run on the node before it goes."""
    pxe_commands: Sequence[str] = ()
    """Shell commands, run here, that boot a machine from the network where nothing else can."""


@dataclass(frozen=True, kw_only=True)
class PoolInstallationArgs:
    """A pool, and what its machines are to run."""

    pool: NodePool
    """The machines."""
    cluster: str
    """The cluster's domain."""
    platform: str
    """What our provider calls the machines' platform."""
    ordered: bool
    """Whether making a machine boots its installer already."""
    access: Access
    """How nodes, and the live systems that install them, are reached."""
    machines: Mapping[Node, MachineInstallation]
    """What each is to run."""
    reprovisioning: Reprovisioning
    """How they are installed again."""
    credentials: ClusterCredentials
    """The cluster: nodes are drained, and join again."""
    disposable: bool = False
    """Whether no cluster was formed yet: machines are installed again without asking anybody."""
    timeout: int
    """Seconds for an installation, and again until the node has joined."""
    valid_hours: int = 24
    """So long an installer works once it was published or started."""


class PoolInstallation(pulumi.ComponentResource):
    """One `Installation` for each machine of a pool."""

    def __init__(self, name: str, args: PoolInstallationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:cluster:PoolInstallation", name, None, opts)
        members = [node.fqdn for node in args.pool.machines]
        self.installed: list[pulumi.Resource] = []
        """What to depend on, to come after all machines were started from their disks."""
        self.generations: dict[Node, pulumi.Output[str]] = {}
        """What each machine runs: changes when it was installed again."""
        for node, machine in args.pool.machines.items():
            plan = args.machines[node]
            installation = Installation(
                f"{node.hostname}-installation",
                InstallationArgs(
                    platform=args.platform,
                    machine_id=machine.machine_id,
                    hostname=node.hostname,
                    node=node.fqdn,
                    role=args.pool.role,
                    pool=name,
                    cluster=args.cluster,
                    generation=plan.generation,
                    runs=plan.runs,
                    address=machine.public_ipv4,
                    addresses=[machine.public_ipv4, machine.private_ipv4],
                    host_key=args.access.public_host_key(node.fqdn),
                    live_host_key=plan.live_host_key,
                    private_key=args.access.private_key,
                    live=plan.live,
                    mac=plan.mac,
                    script=plan.script,
                    chain=plan.chain,
                    user_data=plan.user_data,
                    ipxe_script_url=plan.ipxe_script_url,
                    artifacts=list(plan.places),
                    ordered=args.ordered,
                    consent=node.name in args.reprovisioning.consent,
                    keep=args.reprovisioning.keep,
                    disposable=args.disposable,
                    accept=plan.accept,
                    max_unavailable=args.reprovisioning.max_unavailable,
                    members=members,
                    credentials=args.credentials,
                    drain_timeout_seconds=args.reprovisioning.drain_timeout,
                    pre_reboot_commands=list(args.reprovisioning.pre_reboot_commands),
                    pxe_commands=list(args.reprovisioning.pxe_commands),
                    check=plan.check,
                    log_directory=args.access.log_directory,
                    timeout_seconds=args.timeout,
                    valid_hours=args.valid_hours,
                ),
                pulumi.ResourceOptions(depends_on=[machine.resource, *plan.after], parent=self),
            )
            self.installed.append(installation)
            self.generations[node] = installation.generation
        self.register_outputs({"nodes": members})
