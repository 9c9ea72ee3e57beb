"""MetalLB's objects as plain data: address pools, and how the addresses are announced.

Field names come from MetalLB's API (metallb.io, its module's config/crd) and OpenShift's documentation on it. Nothing
here needs Pulumi or a cluster. Invalid values raise ManifestError, which says what to correct.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metal_ipi.components.machines.contract import BgpNeighbour

Manifest = dict[str, Any]

NAMESPACE = "metallb-system"
"""The namespace in which MetalLB looks for its objects, on OpenShift too."""

PASSWORD_SECRET = "bgp-password"  # noqa: S105 - a name

_HOST_LABEL = "kubernetes.io/hostname"
_LONGEST_NAME = 253


class ManifestError(ValueError):
    """No valid manifest can be made from these values; the message names the value and what to do."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """How MetalLB is installed: by OpenShift's operator, from a catalogue of the Operator Lifecycle Manager."""

    catalog: str = "redhat-operators"
    """`redhat-operators` on OpenShift, `community-operators` on OKD."""
    channel: str = "stable"
    """The update channel."""


def namespace() -> Manifest:
    """MetalLB's namespace. It is privileged, because Pod Security admission refuses pods on the host's network
    otherwise."""
    levels = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": levels}}


def operator(settings: Operator) -> tuple[Manifest, Manifest, Manifest]:
    """OperatorGroup, Subscription, and the MetalLB object that starts controller and speakers, in this order.

    Each is waited for (`pulumi.com/waitFor`), because the API would refuse the next one too early: MetalLB's kinds
    exist once the Subscription has installed the operator; pools and peers need the webhooks, which the MetalLB object
    starts.
    """
    group = _object("operators.coreos.com/v1", "OperatorGroup", "metallb-operator", {})
    subscription = _object(
        "operators.coreos.com/v1alpha1",
        "Subscription",
        "metallb-operator-sub",
        {
            "channel": settings.channel,
            "name": "metallb-operator",
            "source": settings.catalog,
            "sourceNamespace": "openshift-marketplace",
        },
        wait_for="jsonpath={.status.state}=AtLatestKnown",
    )
    metallb = _object("metallb.io/v1beta1", "MetalLB", "metallb", {}, wait_for="condition=Available")
    return group, subscription, metallb


def address_pool(name: str, addresses: Sequence[str], *, auto_assign: bool = True) -> Manifest:
    """An IPAddressPool. `addresses` are CIDRs or ranges `first-last`. Raises ManifestError if empty, which MetalLB
    refuses."""
    if not addresses:
        raise ManifestError(f"the address pool '{name}' has no addresses; add some, or reserve a block for it")
    spec = {"addresses": list(addresses), "autoAssign": auto_assign}
    return _object("metallb.io/v1beta1", "IPAddressPool", name, spec)


def bgp_advertisement(pool: str, aggregation_length: int | None = None) -> Manifest:
    """A BGPAdvertisement: all nodes announce the pool to all their peers, as prefixes of the aggregation length."""
    spec: dict[str, Any] = {"ipAddressPools": [pool]}
    if aggregation_length is not None:
        spec["aggregationLength"] = aggregation_length
    return _object("metallb.io/v1beta1", "BGPAdvertisement", pool, spec)


def l2_advertisement(pools: Sequence[str], interfaces: Sequence[str]) -> Manifest:
    """An L2Advertisement: one node at a time answers for the pools' addresses (ARP, NDP), on these interfaces or on
    all."""
    spec: dict[str, Any] = {"ipAddressPools": list(pools)}
    if interfaces:
        spec["interfaces"] = list(interfaces)
    return _object("metallb.io/v1beta1", "L2Advertisement", "service-addresses", spec)


def password_secret(password: str) -> Manifest:
    """The Secret with the password of the BGP sessions, in the form that BGPPeer's `passwordSecret` requires."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": PASSWORD_SECRET, "namespace": NAMESPACE},
        "type": "kubernetes.io/basic-auth",
        "stringData": {"password": password},
    }


def bgp_peers(
    *, node: str, neighbours: Sequence[BgpNeighbour], password: str | None, hold_time: int | None
) -> tuple[Manifest, ...]:
    """One BGPPeer for each peer address, only for this node: each node has its own source address and neighbours.

    `node` is the value of its label kubernetes.io/hostname. `password` is the one in the Secret; None: no password.
    `hold_time` is in seconds; None: MetalLB's default. Raises ManifestError if a neighbour needs another password.
    """
    peers: list[Manifest] = []
    for neighbour in neighbours:
        if (neighbour.md5_password or None) != password:
            raise ManifestError(
                f"the BGP neighbour of {node} ({', '.join(neighbour.peer_ips)}) has "
                f"{'no' if not neighbour.md5_password else 'another' if password else 'a'} password, and the sessions "
                f"are to have {'that of the first node' if password else 'none, as that of the first node'}: "
                "let the platform give all machines the same (its project's BGP settings)"
            )
        for peer in neighbour.peer_ips:
            peers.append(_bgp_peer(node, neighbour, peer, len(peers), password=password, hold_time=hold_time))
    return tuple(peers)


def peer_name(node: str, number: int) -> str:
    """The name of the BGPPeer for a node's peer with this number. Raises ManifestError if it is not a valid name."""
    name = f"{node}-peer-{number}"
    if len(name) > _LONGEST_NAME or not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name):
        raise ManifestError(
            f"'{node}' is not a node name that a BGPPeer can have in its name; use a DNS name in lower case"
        )
    return name


def _bgp_peer(
    node: str, neighbour: BgpNeighbour, peer: str, number: int, *, password: str | None, hold_time: int | None
) -> Manifest:
    source = ipaddress.ip_address(neighbour.customer_ip)
    if source.version != ipaddress.ip_address(peer).version:
        raise ManifestError(f"the BGP neighbour of {node} has source address {source}, which cannot reach peer {peer}")
    spec: dict[str, Any] = {
        "myASN": neighbour.customer_as,
        "peerASN": neighbour.peer_as,
        "peerAddress": peer,
        "sourceAddress": str(source),
        "ebgpMultiHop": neighbour.multihop,
        "nodeSelectors": [{"matchLabels": {_HOST_LABEL: node}}],
    }
    if hold_time is not None:
        spec["holdTime"] = f"{hold_time}s"
    if password is not None:
        spec["passwordSecret"] = {"name": PASSWORD_SECRET, "namespace": NAMESPACE}
    return _object("metallb.io/v1beta2", "BGPPeer", peer_name(node, number), spec)


def _object(api_version: str, kind: str, name: str, spec: Manifest, *, wait_for: str | None = None) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": NAMESPACE}
    if wait_for is not None:
        metadata["annotations"] = {"pulumi.com/waitFor": wait_for}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
