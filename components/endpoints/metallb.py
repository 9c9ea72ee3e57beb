"""Addresses for the cluster's services of type LoadBalancer, assigned and announced by MetalLB.

On OpenShift and OKD the operator from their catalogues installs MetalLB: it brings RBAC rules, security settings and
updates, which our own manifests would have to repeat for each release. The MetalLB object makes it start controller and
speakers. If MetalLB is installed already (`operator` is None), it and its namespace are left alone, and only pools,
peers and advertisements are applied.

If the platform's cloud controller assigns service addresses itself, this component is not used: the controller writes
MetalLB's objects too, and the two would overwrite each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pulumi
import pulumi_kubernetes as kubernetes

from metal_ipi.components.cluster.api import CoreObject, api_provider
from metal_ipi.components.endpoints import manifests
from metal_ipi.components.endpoints.manifests import Manifest, ManifestError, Operator
from metal_ipi.components.machines.contract import BgpNeighbour
from metal_ipi.provider.types import Secret


@dataclass(frozen=True, kw_only=True)
class PoolArgs:
    """Addresses for services of type LoadBalancer."""

    name: str
    """Its name, unique among the pools."""
    addresses: pulumi.Input[Sequence[pulumi.Input[str]]]
    """CIDRs or ranges `first-last`; for a reserved block an output, known once it is reserved."""
    auto_assign: bool = True
    """Whether services that name no pool get addresses from it."""
    aggregation_length: int | None = None
    """With BGP: the prefix length with which IPv4 addresses are announced. None: each address by itself (/32)."""


@dataclass(frozen=True, kw_only=True)
class BgpNodeArgs:
    """A node that announces addresses."""

    neighbours: pulumi.Input[Sequence[BgpNeighbour]]
    """The node's BGP neighbours according to the platform; known once the machine exists."""
    peers: int = 2
    """The number of the neighbours' peer addresses together (Metal: two). A preview must know the number of objects."""


@dataclass(frozen=True, kw_only=True)
class BgpArgs:
    """Addresses are announced as BGP routes."""

    nodes: Mapping[str, BgpNodeArgs]
    """At least one, by the value of the node's label kubernetes.io/hostname. All must use the same password, or none:
    the others are compared with the first."""
    hold_time: int | None = None
    """Seconds of silence after which a session is lost. None: MetalLB's default."""


@dataclass(frozen=True, kw_only=True)
class L2Args:
    """Addresses are answered for on layer 2 (ARP, NDP), in the nodes' own network."""

    interfaces: tuple[str, ...] = ()
    """The interfaces to answer on. Empty: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLbArgs:
    """The address pools of a cluster, and how they are announced."""

    kubeconfig: pulumi.Input[Secret[str]]
    """An administrator's kubeconfig; secret."""
    pools: tuple[PoolArgs, ...]
    """At least one."""
    announce: BgpArgs | L2Args
    """How the network learns the addresses: BGP or layer 2."""
    operator: Operator | None = None
    """How to install MetalLB. None: it is installed already."""
    after: Sequence[pulumi.Resource] = ()
    """Resources that must be complete before the cluster's API is used."""
    cluster: pulumi.Resource | None = None
    """A resource that lives as long as the cluster. When it is deleted, the objects are dropped from the state without
    calls to the API."""


class MetalLb(pulumi.ComponentResource):
    """MetalLB's objects on one cluster: one resource each, by server-side apply."""

    pools: pulumi.Output[dict[str, list[str]]]
    """The addresses of each pool, known once the pool and its announcement are applied."""

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
        """Declare the namespace and the operator, and put the last resource into `_ready`, on which later objects
        depend."""
        manifest = manifests.namespace()
        namespace = CoreObject("Namespace", f"{name}-namespace", self._after(()), metadata=manifest["metadata"])
        self._ready = [namespace]
        for role, each in zip(("operator-group", "subscription", "metallb"), manifests.operator(operator), strict=True):
            self._ready = [self._custom(f"{name}-{role}", each)]

    def _bgp(self, name: str, args: BgpArgs) -> list[pulumi.CustomResource]:
        """Declare the password's Secret, and one object per node and peer.

        Whether sessions have a password is known only after the platform has made the machines. So the Secret always
        exists; it is empty if no peer refers to it.
        """
        password = pulumi.Output.secret(next(iter(args.nodes.values())).neighbours).apply(_password)
        manifest = manifests.password_secret("")
        secret = CoreObject(
            "Secret",
            f"{name}-bgp-password",
            self._after(()),
            metadata=manifest["metadata"],
            type=manifest["type"],
            stringData=password.apply(
                lambda word: cast("dict[str, str]", manifests.password_secret(word or "")["stringData"])
            ),
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
    """The pool's manifest; only its addresses may be unknown in a preview."""

    def spec(addresses: Sequence[str]) -> Manifest:
        return manifests.address_pool(pool.name, addresses, auto_assign=pool.auto_assign)["spec"]

    frame = manifests.address_pool(pool.name, ("-",))
    addresses = cast("pulumi.Input[Sequence[str]]", pool.addresses)  # the SDK resolves outputs inside lists
    return {**frame, "spec": pulumi.Output.from_input(addresses).apply(spec)}


def bgp_peers(
    node: str, args: BgpNodeArgs, *, password: pulumi.Input[str | None], hold_time: int | None
) -> list[Manifest]:
    """The manifests of a node's peers. Raises ManifestError before anything is applied, if the platform reports another
    number of peers than `args.peers`."""

    def rendered(known: tuple[Sequence[BgpNeighbour], str | None]) -> tuple[Manifest, ...]:
        neighbours, word = known
        peers = manifests.bgp_peers(node=node, neighbours=neighbours, password=word, hold_time=hold_time)
        if len(peers) != args.peers:
            raise ManifestError(
                f"{node} has {len(peers)} BGP peers, not {args.peers}; set the number of peers to that of its platform"
            )
        return peers

    # The password is compared, but not part of the result. So the result is not secret, and a preview shows the peers.
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
