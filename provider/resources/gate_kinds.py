"""What a `Gate` waits for: of each kind its own inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pulumi
from pydantic import Field

from metal_ipi.provider.forms import (
    NOT_EMPTY,
    AbsolutePath,
    Domain,
    HostName,
    HttpsUrl,
    NodeName,
    Pem,
    Port,
    SshKey,
    Whole,
    between,
    form,
    one_of,
)
from metal_ipi.provider.given import Flat, Given, GivenList, ListOf, MapOf, Secret, default
from metal_ipi.provider.inputs import Conflict, Inputs
from metal_ipi.provider.resources.credentials import ClusterCredentials

_Console = Annotated[str, Field(min_length=0), form(r"([^@\s]+@[^@\s]+)?", "`<user>@<host>`")]
_LogDirectory = Annotated[AbsolutePath | None, Field(alias="logDirectory")]
_ObjectName = Annotated[str, form(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", "an object's name")]
_Condition = Annotated[str, form(r"[A-Za-z0-9./-]+=(True|False|Unknown)", "a condition: `<type>=<status>`")]
_Network = Annotated[str, form(r"[0-9.]+(/\d+)?|[0-9a-fA-F:]*:[0-9a-fA-F:.]*(/\d+)?", "an address or a CIDR")]

if TYPE_CHECKING:

    class _ByNode:
        """Lists by the name of a node."""

        def __get__(self, instance: object, owner: Any) -> Mapping[str, tuple[str, ...]] | None: ...
        def __set__(
            self, instance: object, value: Mapping[str, pulumi.Input[Sequence[pulumi.Input[str]]]] | None
        ) -> None: ...

else:
    _ByNode = MapOf[ListOf[str]] | None


class GateNode(Inputs):
    """A node a gate waits for, or whose logs it gathers when it fails."""

    name: Given[HostName]
    """Host name."""
    address: Given[str]
    """IP address SSH answers on."""
    host_key: Given[SshKey]
    """Pinned SSH host key, `ssh-ed25519 AAAA…`."""
    machine_id: Given[str | None] = default()
    """The platform's id: its events are watched for an Ignition failure."""
    console: Given[_Console | None] = default()
    """`<machine id>@<serial-over-SSH host>`; empty where there is none."""
    port: Given[Port | None] = default()
    """SSH port, 22."""
    ipv6: Given[str | None] = default()
    """With dual stack: its IPv6 address, where SSH must answer as well, as far as there is a route to it from here."""

    def __hash__(self) -> int:
        return hash((self.name, self.address))


class GateLogs(Inputs):
    """What a gate needs to gather logs when it fails. Optional everywhere but in `SshReachable`."""

    nodes: ListOf[GateNode] = default(())
    """Nodes whose console and journal are gathered."""
    user: Given[str | None] = default()
    """SSH user, `core`."""
    private_key: Given[Secret[str] | None] = default()
    """SSH key, OpenSSH PEM; also opens the consoles. Secret."""
    directory: Given[_LogDirectory] = default()
    """Absolute directory; logs go to `<directory>/<gate>/<node>.console.log`, readable by the owner only."""


class GateSpec(Inputs):
    """What a gate waits for."""

    kind: ClassVar[str]
    """The gate's kind on the wire."""


class _OverSsh(GateSpec):
    """What is seen by logging in to the nodes."""

    logs: Flat[GateLogs]
    """The nodes, the user and the key to log in with."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        for key in ("nodes", "user", "privateKey"):
            if given.get(key) is None:
                yield (key,), "is required"


class SshReachable(_OverSsh):
    """All nodes accept an SSH login with their pinned host keys. Fails early when a node's Ignition failed."""

    kind: ClassVar[str] = "ssh-reachable"


class MachineConfigAccess(_OverSsh):
    """Each node's machine config server answers the given networks and nobody else, which is tried from here."""

    program: Annotated[str, form(r"/[\w./-]+", "an absolute path")]
    """Absolute path of what takes the networks on each node, one per line: `<program> set`."""
    networks: Annotated[GivenList[_Network], NOT_EMPTY]
    """Addresses and CIDRs to let in."""
    addresses: GivenList[str] = default(())
    """Further addresses behind which the nodes are, and which must not answer, either."""
    part: Given[Annotated[str, form(r"[a-z][-a-z0-9]*", "a pool's name")] | None] = default()
    """Whose networks these are, where they are those of a pool: nodes let in the networks of all parts, and forget a
    pool's when this gate is deleted. None: the cluster's own."""

    kind: ClassVar[str] = "machine-config-access"


class AddressAnnounced(_OverSsh):
    """All nodes announce an address over BGP, or one of them has it with ARP, and others have let go of it."""

    leaving: Annotated[ListOf[GateNode], Field(alias="from")] = default(())
    """Those that let go of the address once all nodes are able to serve it; they may be gone already."""
    address: Given[Annotated[str, form(r"[\d.]+", "an IPv4 address")]]
    """The IPv4 address."""
    mode: Annotated[str, one_of("bgp", "arp")]
    """`bgp` or `arp`."""
    program: Annotated[str, form(r"/[\w./-]+", "an absolute path")]
    """Absolute path of what answers on each node: `<program> status`, `<program> stop`."""

    kind: ClassVar[str] = "address-announced"


class ApiAnswers(GateSpec):
    """An HTTPS URL answers 200."""

    url: Given[HttpsUrl]
    """`https://api.<cluster>.<domain>:6443/readyz`."""
    ca_pem: Given[Pem]
    """Certificates its TLS certificate must be signed by."""
    logs: Flat[GateLogs] = default(GateLogs())
    """Whose logs to gather on failure."""

    kind: ClassVar[str] = "api-answers"


class IngressAnswers(GateSpec):
    """A router of the cluster answers HTTPS at an address, with a certificate for names of the cluster's."""

    address: Given[Annotated[str, form(r"[\d.]+", "an IPv4 address")]]
    """The IPv4 address."""
    domain: Given[Domain]
    """`apps.<cluster's domain>`: what all names end in that routers serve."""
    logs: Flat[GateLogs] = default(GateLogs())
    """Whose logs to gather on failure."""

    kind: ClassVar[str] = "ingress-answers"


class _OfCluster(GateSpec):
    """What a cluster's API tells."""

    credentials: Flat[ClusterCredentials]
    """The cluster."""
    logs: Flat[GateLogs] = default(GateLogs())
    """Whose logs to gather on failure."""


class BootstrapComplete(_OfCluster):
    """ConfigMap kube-system/bootstrap says `complete` (openshift/installer, create.go).

    Approves the certificate requests of the named nodes, and of no others.
    """

    names: GivenList[NodeName] = default(())
    """Kubernetes node names of the control plane."""
    addresses: _ByNode = default()
    """Node name to the IP addresses its serving certificate may name; not given, no address is accepted in one."""

    kind: ClassVar[str] = "bootstrap-complete"


class NodesReady(_OfCluster):
    """Each named node is Ready. Approves the certificate requests of these nodes, and of no others."""

    names: Annotated[GivenList[NodeName], NOT_EMPTY]
    """Kubernetes node names."""
    addresses: _ByNode = default()
    """Node name to the IP addresses its serving certificate may name; not given, no address is accepted in one."""
    etcd_members: Given[Annotated[Whole, between(1)] | None] = default()
    """How many members etcd must have besides, all of them available, where the cluster has etcd's operator."""

    kind: ClassVar[str] = "nodes-ready"


class InstallComplete(_OfCluster):
    """ClusterVersion is Available, not Failing and not Progressing, and stays so for `stability_seconds`."""

    kind: ClassVar[str] = "install-complete"


class ClusterApiAvailable(_OfCluster):
    """On a hub, whose credentials these are, Cluster API says that a cluster is Available.

    Fails early when our providers say what they cannot do.
    """

    namespace: Annotated[str, form(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a namespace")]
    """The namespace of the Cluster."""
    cluster: Annotated[str, form(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a Cluster")]
    """The Cluster's name."""

    kind: ClassVar[str] = "cluster-api-available"


class OperatorInstalled(_OfCluster):
    """The operator of a Subscription is installed: its ClusterServiceVersion succeeded, and is the latest of its
    channel; where somebody approves updates, the one that was approved."""

    namespace: Given[_ObjectName]
    """The Subscription's namespace."""
    subscription: Given[_ObjectName]
    """The Subscription's name."""
    manual: bool = False
    """Whether somebody approves each InstallPlan."""

    kind: ClassVar[str] = "operator-installed"


class ObjectReady(_OfCluster):
    """An object of the API has conditions, and its status is of what it says now (observedGeneration)."""

    path: Annotated[str, form(r"/apis?/[\w./-]+", "the path of an object of the API")]
    """Its path: `/apis/<group>/<version>/<plural>/<name>`."""
    conditions: Annotated[GivenList[_Condition], NOT_EMPTY]
    """Each a condition's type and status: `Available=True`."""

    kind: ClassVar[str] = "object-ready"


KINDS: Mapping[str, type[GateSpec]] = {
    each.kind: each
    for each in (
        SshReachable,
        MachineConfigAccess,
        ApiAnswers,
        BootstrapComplete,
        AddressAnnounced,
        IngressAnswers,
        NodesReady,
        InstallComplete,
        ClusterApiAvailable,
        OperatorInstalled,
        ObjectReady,
    )
}
