"""What a `Gate` waits for. Each kind has its own inputs."""

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
        """Node name to a list."""

        def __get__(self, instance: object, owner: Any) -> Mapping[str, tuple[str, ...]] | None: ...
        def __set__(
            self, instance: object, value: Mapping[str, pulumi.Input[Sequence[pulumi.Input[str]]]] | None
        ) -> None: ...

else:
    _ByNode = MapOf[ListOf[str]] | None


class GateNode(Inputs):
    """A node that a gate waits for, or whose logs it gathers on a failure."""

    name: Given[HostName]
    """Host name."""
    address: Given[str]
    """IP address of its SSH server."""
    host_key: Given[SshKey]
    """Pinned SSH host key, `ssh-ed25519 AAAA…`."""
    machine_id: Given[str | None] = default()
    """The platform's id. On Equinix Metal, the gate watches its events for an Ignition failure."""
    console: Given[_Console | None] = default()
    """`<machine id>@<serial-over-SSH host>`; empty if there is none."""
    port: Given[Port | None] = default()
    """SSH port; default 22."""
    ipv6: Given[str | None] = default()
    """With dual stack: its IPv6 address, where SSH must answer too, if this computer has a route to it."""

    def __hash__(self) -> int:
        return hash((self.name, self.address))


class GateLogs(Inputs):
    """What a gate needs to gather logs on a failure. All optional, except for gates that use SSH anyway."""

    nodes: ListOf[GateNode] = default(())
    """Nodes whose console and journal are gathered."""
    user: Given[str | None] = default()
    """SSH user, `core`."""
    private_key: Given[Secret[str] | None] = default()
    """SSH key, OpenSSH PEM; also for the consoles. Secret."""
    directory: Given[_LogDirectory] = default()
    """Absolute directory. Logs go to `<directory>/<gate>/<node>.console.log`, readable by the owner only."""


class GateSpec(Inputs):
    """What a gate waits for."""

    kind: ClassVar[str]
    """The gate's kind on the wire."""


class _OverSsh(GateSpec):
    """A condition that the gate checks by logging in to the nodes."""

    logs: Flat[GateLogs]
    """The nodes, with the user and the key to log in."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        for key in ("nodes", "user", "privateKey"):
            if given.get(key) is None:
                yield (key,), "is required"


class SshReachable(_OverSsh):
    """All nodes accept an SSH login, and show their pinned host keys. Fails early if a node's Ignition failed."""

    kind: ClassVar[str] = "ssh-reachable"


class MachineConfigAccess(_OverSsh):
    """Each node's machine config server answers the given networks and nobody else. The gate tests that from this
    computer."""

    program: Annotated[str, form(r"/[\w./-]+", "an absolute path")]
    """Absolute path of the program that sets the networks on each node, one per line: `<program> set`."""
    networks: Annotated[GivenList[_Network], NOT_EMPTY]
    """Addresses and CIDRs that get access."""
    addresses: GivenList[str] = default(())
    """Further addresses that lead to the nodes, and on which the server must not answer either."""
    part: Given[Annotated[str, form(r"[a-z][-a-z0-9]*", "a pool's name")] | None] = default()
    """Name of the pool that these networks belong to; None: they are the cluster's own. Nodes give access to the
    networks of all pools, and remove a pool's when this gate is deleted."""

    kind: ClassVar[str] = "machine-config-access"


class AddressAnnounced(_OverSsh):
    """All nodes announce an address over BGP; or, with ARP, one of them has it. The nodes in `from` have released
    it."""

    leaving: Annotated[ListOf[GateNode], Field(alias="from")] = default(())
    """Nodes that release the address once all other nodes can serve it. They may be gone already."""
    address: Given[Annotated[str, form(r"[\d.]+", "an IPv4 address")]]
    """The IPv4 address."""
    mode: Annotated[str, one_of("bgp", "arp")]
    """`bgp` or `arp`."""
    program: Annotated[str, form(r"/[\w./-]+", "an absolute path")]
    """Absolute path of the program on each node: `<program> status`, `<program> stop`."""

    kind: ClassVar[str] = "address-announced"


class ApiAnswers(GateSpec):
    """An HTTPS URL answers with status 200."""

    url: Given[HttpsUrl]
    """`https://api.<cluster>.<domain>:6443/readyz`."""
    ca_pem: Given[Pem]
    """Certificates of the authorities that may sign its TLS certificate."""
    logs: Flat[GateLogs] = default(GateLogs())
    """The nodes whose logs are gathered on a failure."""

    kind: ClassVar[str] = "api-answers"


class IngressAnswers(GateSpec):
    """A router of the cluster answers HTTPS at an address, with a certificate for the cluster's names."""

    address: Given[Annotated[str, form(r"[\d.]+", "an IPv4 address")]]
    """The IPv4 address."""
    domain: Given[Domain]
    """`apps.<cluster's domain>`: the domain of all names that the routers serve."""
    logs: Flat[GateLogs] = default(GateLogs())
    """The nodes whose logs are gathered on a failure."""

    kind: ClassVar[str] = "ingress-answers"


class _OfCluster(GateSpec):
    """A condition that the gate reads from a cluster's API."""

    credentials: Flat[ClusterCredentials]
    """How to reach the cluster."""
    logs: Flat[GateLogs] = default(GateLogs())
    """The nodes whose logs are gathered on a failure."""


class BootstrapComplete(_OfCluster):
    """ConfigMap kube-system/bootstrap says `complete` (openshift/installer, create.go).

    Approves the certificate requests of the named nodes, and of no others.
    """

    names: GivenList[NodeName] = default(())
    """Kubernetes node names of the control plane."""
    addresses: _ByNode = default()
    """Node name to the IP addresses that its serving certificate may contain; default: none."""

    kind: ClassVar[str] = "bootstrap-complete"


class NodesReady(_OfCluster):
    """All named nodes are Ready. Approves the certificate requests of these nodes, and of no others."""

    names: Annotated[GivenList[NodeName], NOT_EMPTY]
    """Kubernetes node names."""
    addresses: _ByNode = default()
    """Node name to the IP addresses that its serving certificate may contain; default: none."""
    etcd_members: Given[Annotated[Whole, between(1)] | None] = default()
    """Number of members that etcd must have too, all of them available. Ignored if the cluster has no etcd operator."""

    kind: ClassVar[str] = "nodes-ready"


class InstallComplete(_OfCluster):
    """ClusterVersion is Available, not Failing and not Progressing, and stays so for `stability_seconds`."""

    kind: ClassVar[str] = "install-complete"


class ClusterApiAvailable(_OfCluster):
    """On a management cluster (hub), Cluster API reports that a Cluster is Available. The credentials are those of the
    hub.

    Fails early if our Cluster API providers report something that they cannot do.
    """

    namespace: Annotated[str, form(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a namespace")]
    """Namespace of the Cluster."""
    cluster: Annotated[str, form(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a Cluster")]
    """Name of the Cluster."""

    kind: ClassVar[str] = "cluster-api-available"


class OperatorInstalled(_OfCluster):
    """The operator of a Subscription is installed: its ClusterServiceVersion succeeded and is the latest of its
    channel. With manual approval: it is the version that was approved."""

    namespace: Given[_ObjectName]
    """Namespace of the Subscription."""
    subscription: Given[_ObjectName]
    """Name of the Subscription."""
    manual: bool = False
    """Whether each InstallPlan needs manual approval."""

    kind: ClassVar[str] = "operator-installed"


class ObjectReady(_OfCluster):
    """An object of the API has the given conditions, and its status belongs to its current spec
    (observedGeneration)."""

    path: Annotated[str, form(r"/apis?/[\w./-]+", "the path of an object of the API")]
    """Path of the object: `/apis/<group>/<version>/<plural>/<name>`."""
    conditions: Annotated[GivenList[_Condition], NOT_EMPTY]
    """Conditions as type and status: `Available=True`."""

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
