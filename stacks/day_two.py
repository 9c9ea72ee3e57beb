"""From settings to what is added to a complete cluster: labels and taints, operators, the image registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pulumi

from metal_ipi.components.addons import ready_made
from metal_ipi.components.addons.objects import Given, read
from metal_ipi.components.addons.operators import Manifest, OperatorArgs, Operators, OperatorsArgs, SecretArgs
from metal_ipi.components.addons.ready_made import NodeBmc
from metal_ipi.components.addons.registry import ClaimArgs, ImageRegistry, RegistryArgs
from metal_ipi.components.machines.contract import Machine
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import (
    BEING_INSTALLED,
    ClusterCredentials,
    NodeMarks,
    NodeMarksArgs,
    NodeMarksOfNode,
    TaintArgs,
)
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.names import Nodes
from metal_ipi.stacks.platforms.contract import Facility, FencedBy
from metal_ipi.stacks.sections.base import revealed
from metal_ipi.stacks.sections.day_two import LvmStorage, NmState, NodeHealthCheck
from metal_ipi.stacks.sections.forms import PROJECT
from metal_ipi.stacks.sections.image_registry import ClaimRegistry, NoRegistry, S3Registry
from metal_ipi.stacks.sections.image_registry import ImageRegistry as Registry

NAME = "day-two"


def operators(settings: Settings, site: Facility) -> tuple[OperatorArgs, ...]:
    """All operators with their custom resources. Raises ObjectsError with all problems of the custom resources."""
    section = settings.day_two
    found: list[OperatorArgs] = []
    if section.lvm_storage is not None:
        found.append(_lvm(section.lvm_storage, settings))
    if section.nm_state is not None:
        found.append(_nmstate(section.nm_state))
    if section.node_health_check is not None and not isinstance(site.bmcs, str):
        found += _health(section.node_health_check, Nodes.of(settings), site.bmcs)
    found = [replace(each, catalog=section.catalog) for each in found]
    for each, objects in zip(section.operators, _objects(settings), strict=True):
        found.append(
            OperatorArgs(
                package=each.package,
                namespace=each.namespace,
                catalog=each.catalog or section.catalog,
                catalog_namespace=each.catalog_namespace,
                channel=each.channel,
                starting_csv=each.starting_csv,
                privileged=each.privileged,
                manual=each.approval == "manual",
                everywhere=each.watches == "all-namespaces",
                objects=tuple(objects),
            )
        )
    return tuple(found)


def _objects(settings: Settings) -> Iterator[list[Manifest]]:
    """The custom resources of each operator of `dayTwo.operators`."""
    given = [
        [
            Given(
                where=f"dayTwo.operators[{number}].objects[{place}]",
                file=PROJECT / each.file if each.file else None,
                manifest=each.manifest or {},
                wait_for=each.wait_for,
            )
            for place, each in enumerate(operator.objects)
        ]
        for number, operator in enumerate(settings.day_two.operators)
    ]
    found = iter(read(each for those in given for each in those))
    for those in given:
        yield [manifest for _ in those for manifest in next(found)]


def _lvm(section: LvmStorage, settings: Settings) -> OperatorArgs:
    major, minor, *_ = settings.openshift_version.split(".")
    nodes = [name for name in settings.machines if section.role is None or name.startswith(f"{section.role}-")]
    cluster = ready_made.lvm_cluster(
        name=section.device_class,
        disks=section.disks,
        role=section.role,
        wipe=section.wipe,
        filesystem=section.filesystem,
        size_percent=section.thin_pool.size_percent,
        overprovision_ratio=section.thin_pool.overprovision_ratio,
        taints=[
            (taint.key, taint.value, taint.effect)
            for name in nodes
            for taint in settings.taints(name)
            if taint.effect != "PreferNoSchedule"
        ],
    )
    return OperatorArgs(
        package=ready_made.LVM,
        namespace=ready_made.LVM_NAMESPACE,
        catalog="",
        channel=section.channel or f"stable-{major}.{minor}",
        privileged=True,
        objects=(cluster,),
    )


def _nmstate(section: NmState) -> OperatorArgs:
    policies = (
        ready_made.network_policy(
            policy.name, policy.desired_state, role=policy.role, max_unavailable=policy.max_unavailable
        )
        for policy in section.policies
    )
    return OperatorArgs(
        package=ready_made.NMSTATE,
        namespace=ready_made.NMSTATE_NAMESPACE,
        catalog="",
        channel=section.channel,
        privileged=True,
        objects=(ready_made.nmstate(), *policies),
        settled={ready_made.NMSTATE_WEBHOOK: "Available=True"},
    )


def _health(section: NodeHealthCheck, nodes: Nodes, bmcs: Iterable[FencedBy]) -> list[OperatorArgs]:
    """Two operators. The fencing operator comes first, because the other one refers to its template."""
    names = {node.name: node.fqdn for node in (*nodes.control_plane, *nodes.workers) if node.role == section.role}
    secrets: dict[tuple[str, str], str] = {}
    found: list[NodeBmc] = []
    for bmc in sorted(bmcs, key=lambda bmc: bmc.machine):
        if bmc.machine in names:
            secret = secrets.setdefault((bmc.username, bmc.password), f"bmc-of-{bmc.machine}")
            node = names[bmc.machine]
            found.append(NodeBmc(node=node, address=bmc.address, system_id=bmc.system_id, secret=secret))
    shared = OperatorArgs(
        package=ready_made.FENCING,
        namespace=ready_made.AVAILABILITY_NAMESPACE,
        catalog="",
        channel=section.channel,
        everywhere=True,
    )
    fencing = replace(
        shared,
        secrets=tuple(
            SecretArgs(name=name, data={"--username": username, "--password": pulumi.Output.secret(password)})
            for (username, password), name in secrets.items()
        ),
        objects=(ready_made.fencing_template(found, verify=section.verify_certificates),),
    )
    check = ready_made.health_check(
        section.role,
        spared=BEING_INSTALLED,
        unhealthy_after=section.unhealthy_after,
        min_healthy_percent=section.min_healthy_percent,
    )
    return [fencing, replace(shared, package=ready_made.HEALTH, objects=(check,), follows=ready_made.FENCING)]


@dataclass(frozen=True, kw_only=True)
class Complete:
    """A complete cluster, and an administrator's access to it."""

    kubeconfig: pulumi.Output[str]
    credentials: ClusterCredentials
    keys: pulumi.Resource
    """A resource that lives as long as the cluster."""
    after: Sequence[pulumi.Resource]
    """Resources after which the cluster is complete."""


def day_two(
    settings: Settings, wanted: tuple[OperatorArgs, ...], cluster: Complete, components: pulumi.ResourceOptions
) -> None:
    """Declare operators and the image registry; `wanted` is the result of `operators`."""
    done: Sequence[pulumi.Resource] = ()
    timeout = settings.timeouts.day_two
    if wanted:
        args = OperatorsArgs(
            kubeconfig=cluster.kubeconfig,
            credentials=cluster.credentials,
            operators=wanted,
            timeout=timeout,
            after=cluster.after,
            cluster=cluster.keys,
        )
        done = Operators(NAME, args, components).done
    section = settings.day_two.registry
    if section is not None:
        frame = RegistryArgs(
            kubeconfig=cluster.kubeconfig,
            credentials=cluster.credentials,
            timeout=timeout,
            managed=not isinstance(section, NoRegistry),
            after=[*cluster.after, *done],  # a claim may use a storage class that an operator provides
            cluster=cluster.keys,
        )
        ImageRegistry("image-registry", _registry(section, frame), components)


def _registry(section: Registry, frame: RegistryArgs) -> RegistryArgs:
    if isinstance(section, NoRegistry):
        return frame
    if isinstance(section, ClaimRegistry):
        claim = ClaimArgs(storage_class=section.storage_class, size=section.size, access=section.access)
        return replace(frame, replicas=section.replicas, claim=claim)
    if isinstance(section, S3Registry):
        s3 = {"bucket": section.bucket, "region": section.region, "virtualHostedStyle": not section.path_style}
        s3 |= {"regionEndpoint": section.endpoint} if section.endpoint else {}
        keys = {
            "REGISTRY_STORAGE_S3_ACCESSKEY": section.access_key_id or revealed(None),
            "REGISTRY_STORAGE_S3_SECRETKEY": revealed(section.secret_access_key),
        }
        return replace(frame, replicas=section.replicas, storage={"s3": s3}, keys=keys)
    return replace(frame, storage={"emptyDir": {}})


def node_marks(
    settings: Settings,
    machines: Mapping[Node, Machine],
    credentials: ClusterCredentials,
    after: Sequence[pulumi.Resource],
    ours: pulumi.ResourceOptions,
) -> NodeMarks | None:
    """Declare the labels and taints of nodes; None if there are none."""
    nodes = [
        NodeMarksOfNode(
            name=node.fqdn,
            machine=machine.machine_id,
            labels=settings.labels(node.name),
            taints=[TaintArgs(**taint.model_dump()) for taint in settings.taints(node.name)],
        )
        for node, machine in machines.items()
        if settings.labels(node.name) or settings.taints(node.name)
    ]
    if not nodes:
        return None
    opts = pulumi.ResourceOptions.merge(ours, pulumi.ResourceOptions(depends_on=list(after)))
    return NodeMarks("node-marks", NodeMarksArgs(credentials=credentials, nodes=nodes), opts)
