"""Addresses for the cluster's services of type LoadBalancer, given out and made known by MetalLB.

What is installed: on OpenShift and OKD the operator that their catalogues carry, because it comes with the rights, the
security settings and the updates that manifests of our own would have to repeat for each release; the MetalLB object
then has it start controller and speakers. Where MetalLB is there already (`operator` None), it and its namespace are
kept by whoever put them there, and only what it works by is applied: pools, peers, advertisements.

Where the platform's cloud controller assigns service addresses itself, none of this is used: it writes MetalLB's
objects, and two writers would undo each other's work (facts: «do not manage pools beside it»).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pulumi
import pulumi_kubernetes as kubernetes

from metal_ipi.components.cluster.api import api_provider
from metal_ipi.components.endpoints import manifests
from metal_ipi.components.endpoints.manifests import Manifest, ManifestError, Operator
from metal_ipi.components.machines.contract import BgpNeighbour
from metal_ipi.provider.types import Secret


@dataclass(frozen=True, kw_only=True)
class PoolArgs:
    """Addresses for services of type LoadBalancer."""

    name: str
    """Its name, unique."""
    addresses: pulumi.Input[Sequence[pulumi.Input[str]]]
    """CIDRs or ranges `first-last`; those of a reserved block once it is reserved."""
    auto_assign: bool = True
    """Whether services get addresses from it without asking for it by name."""
    aggregation_length: int | None = None
    """BGP: the prefix length that IPv4 addresses are announced with; None: each by itself (/32)."""


@dataclass(frozen=True, kw_only=True)
class BgpNodeArgs:
    """A node that announces addresses."""

    neighbours: pulumi.Input[Sequence[BgpNeighbour]]
    """Whom it may announce to, as the platform says; known once the machine is there."""
    peers: int = 2
    """How many peer addresses these have together (Metal: two). A preview must know how many objects there will be."""


@dataclass(frozen=True, kw_only=True)
class BgpArgs:
    """Addresses are announced as routes."""

    nodes: Mapping[str, BgpNodeArgs]
    """At least one, by the value of the node's label kubernetes.io/hostname. All must have the same password, or none:
    that of the first is what the others are compared with."""
    hold_time: int | None = None
    """Seconds after which a silent session is lost; None: MetalLB's own."""


@dataclass(frozen=True, kw_only=True)
class L2Args:
    """Addresses are answered for in the nodes' own network."""

    interfaces: tuple[str, ...] = ()
    """The interfaces to answer on; none given: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLbArgs:
    """Which addresses, and how they become known."""

    kubeconfig: pulumi.Input[Secret[str]]
    """An administrator's kubeconfig, secret."""
    pools: tuple[PoolArgs, ...]
    """At least one."""
    announce: BgpArgs | L2Args
    """How the network learns where an address is."""
    operator: Operator | None = None
    """What to install MetalLB with; None where it is there."""
    after: Sequence[pulumi.Resource] = ()
    """What must be done before the cluster is asked for anything."""
    cluster: pulumi.Resource | None = None
    """What lasts as long as the cluster: the objects go with it, without anybody being asked to delete them."""


class MetalLb(pulumi.ComponentResource):
    """MetalLB's objects on one cluster, each a resource, all by server-side apply."""

    pools: pulumi.Output[dict[str, list[str]]]
    """The addresses of each pool, once it and its announcement are applied."""

    def __init__(self, name: str, args: MetalLbArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:endpoints:MetalLb", name, None, opts)
        provider = api_provider(f"{name}-provider", args.kubeconfig, self)
        self._child = pulumi.ResourceOptions(parent=self, provider=provider, deleted_with=args.cluster)
        self._ready = list(args.after)
        if args.operator is not None:
            self._install(name, args.operator)
        applied = [self._custom(f"{name}-{pool.name}-pool", address_pool(pool)) for pool in args.pools]
        if isinstance(args.announce, L2Args):
            advertisement = manifests.l2_advertisement([pool.name for pool in args.pools], args.announce.interfaces)
            applied.append(self._custom(f"{name}-l2", advertisement, after=applied))
        else:
            applied += self._bgp(name, args.announce)
            for pool in args.pools:
                advertisement = manifests.bgp_advertisement(pool.name, pool.aggregation_length)
                applied.append(self._custom(f"{name}-{pool.name}-bgp", advertisement, after=applied))
        addresses = {pool.name: pool.addresses for pool in args.pools}
        done = pulumi.Output.all(addresses, *(resource.id for resource in applied))
        self.pools = done.apply(lambda known: cast("dict[str, list[str]]", known[0]))
        self.register_outputs({"pools": self.pools})

    def _install(self, name: str, operator: Operator) -> None:
        """The namespace and the operator. What comes next depends on `_ready`."""
        manifest = manifests.namespace()
        namespace = kubernetes.core.v1.Namespace(
            f"{name}-namespace", metadata=manifest["metadata"], opts=self._after(())
        )
        self._ready = [namespace]
        for role, each in zip(("operator-group", "subscription", "metallb"), manifests.operator(operator), strict=True):
            self._ready = [self._custom(f"{name}-{role}", each)]

    def _bgp(self, name: str, args: BgpArgs) -> list[pulumi.CustomResource]:
        """The password, and one object per node and peer.

        Whether there is a password is known once the platform has machines: the Secret is there in any case, and empty
        where nobody refers to it.
        """
        password = pulumi.Output.secret(next(iter(args.nodes.values())).neighbours).apply(_password)
        manifest = manifests.password_secret("")
        secret = kubernetes.core.v1.Secret(
            f"{name}-bgp-password",
            metadata=manifest["metadata"],
            type=manifest["type"],
            string_data=password.apply(
                lambda word: cast("dict[str, str]", manifests.password_secret(word or "")["stringData"])
            ),
            opts=self._after(()),
        )
        peers = [
            self._custom(f"{name}-{peer['metadata']['name']}", peer, after=[secret])
            for node, each in args.nodes.items()
            for peer in bgp_peers(node, each, password=password, hold_time=args.hold_time)
        ]
        return [secret, *peers]

    def _custom(
        self, name: str, manifest: Manifest, after: Sequence[pulumi.Resource] = ()
    ) -> kubernetes.apiextensions.CustomResource:
        return kubernetes.apiextensions.CustomResource(
            name,
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            metadata=manifest["metadata"],
            spec=manifest["spec"],
            opts=self._after(after),
        )

    def _after(self, others: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(self._child, pulumi.ResourceOptions(depends_on=[*self._ready, *others]))


def address_pool(pool: PoolArgs) -> Manifest:
    """Its manifest; only the addresses wait for what is not known yet."""

    def spec(addresses: Sequence[str]) -> Manifest:
        return manifests.address_pool(pool.name, addresses, auto_assign=pool.auto_assign)["spec"]

    frame = manifests.address_pool(pool.name, ("-",))
    addresses = cast("pulumi.Input[Sequence[str]]", pool.addresses)  # the SDK lifts outputs out of lists
    return {**frame, "spec": pulumi.Output.from_input(addresses).apply(spec)}


def bgp_peers(
    node: str, args: BgpNodeArgs, *, password: pulumi.Input[str | None], hold_time: int | None
) -> list[Manifest]:
    """The node's peers; what the platform says is told from what was announced before anything is applied."""

    def rendered(known: tuple[Sequence[BgpNeighbour], str | None]) -> tuple[Manifest, ...]:
        neighbours, word = known
        peers = manifests.bgp_peers(node=node, neighbours=neighbours, password=word, hold_time=hold_time)
        if len(peers) != args.peers:
            raise ManifestError(
                f"{node} has {len(peers)} BGP peers, not {args.peers}; set the number of peers to what its platform has"
            )
        return peers

    # The password is compared, not shown: what comes of it is no secret, and peers should be seen in a preview.
    together = pulumi.Output.all(args.neighbours, password)
    all_peers = pulumi.Output.unsecret(together.apply(lambda known: rendered((known[0], known[1]))))
    return [
        {
            "apiVersion": "metallb.io/v1beta2",
            "kind": "BGPPeer",
            "metadata": {"name": manifests.peer_name(node, number), "namespace": manifests.NAMESPACE},
            "spec": all_peers.apply(lambda peers, number=number: peers[number]["spec"]),
        }
        for number in range(args.peers)
    ]


def _password(neighbours: Sequence[BgpNeighbour]) -> str | None:
    return next((neighbour.md5_password or None for neighbour in neighbours), None)
