"""From settings to the addresses of API and ingress: where they come from, and the gates that wait for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from metal_ipi.components.cluster.pool import Access
from metal_ipi.components.endpoints import kube_vip
from metal_ipi.components.install.stage import Stage
from metal_ipi.components.machines.contract import Machine, Platform
from metal_ipi.components.machines.node import Node, Role
from metal_ipi.provider.types import AddressAnnounced, Gate, GateArgs, IngressAnswers
from metal_ipi.stacks.names import API_ADDRESS, INGRESS_ADDRESS
from metal_ipi.stacks.sections.api_address import DnsIngress, DnsRoundRobin, ExternalApi, KubeVip
from metal_ipi.stacks.settings import Settings


def api_address(settings: Settings, platform: Platform) -> pulumi.Output[str] | None:
    """The API's own address; None if its names resolve to the machines that serve it."""
    api = settings.api_address
    if isinstance(api, DnsRoundRobin):
        return None
    return platform.reserved[API_ADDRESS].first if api.address is None else pulumi.Output.from_input(api.address)


def ingress_address(settings: Settings, platform: Platform) -> pulumi.Output[str] | None:
    """The address of `*.apps`; None if it resolves to the machines that take ingress."""
    ingress = settings.ingress_address
    if isinstance(ingress, DnsIngress):
        return None
    address = ingress.address
    return platform.reserved[INGRESS_ADDRESS].first if address is None else pulumi.Output.from_input(address)


def takes_ingress(settings: Settings, stage: Stage, role: Role) -> bool:
    """Whether machines of a role may run routers: workers do, and the control plane if it runs pods."""
    return role == "worker" or (role == "control-plane" and (stage.schedulable or not settings.workers.count))


def announces_ingress(settings: Settings, stage: Stage, role: Role) -> KubeVip | None:
    """How machines of a role announce the address of ingress; None if they do not."""
    ingress = settings.ingress_address
    return ingress if isinstance(ingress, KubeVip) and takes_ingress(settings, stage, role) else None


def speaks_bgp_for_ingress(settings: Settings, stage: Stage, role: Role) -> bool:
    """Whether machines of a role announce the address of ingress over BGP."""
    ingress = announces_ingress(settings, stage, role)
    return ingress is not None and ingress.mode == "bgp"


def routes_to_machines(settings: Settings) -> bool:
    """Whether `*.apps` resolves to the machines that take ingress."""
    return isinstance(settings.ingress_address, DnsIngress)


def ipv6(settings: Settings) -> dict[str, str]:
    """The API's own IPv6 address, by its name; empty if it has none."""
    api = settings.api_address
    own = api.ipv6_address if isinstance(api, ExternalApi) else None
    return {f"api.{settings.domain}": own} if own is not None else {}


def speaks_bgp(settings: Settings) -> bool:
    """Whether the machines that serve the API announce its address over BGP."""
    api = settings.api_address
    return isinstance(api, KubeVip) and api.mode == "bgp"


def announced(
    settings: Settings,
    address: pulumi.Output[str] | None,
    *,
    access: Access,
    control_plane: Mapping[Node, Machine],
    bootstrap: Mapping[Node, Machine],
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> list[Gate]:
    """The gate that waits until the control plane announces the API's address; empty if nothing announces it."""
    api = settings.api_address
    if not isinstance(api, KubeVip) or address is None:
        return []
    gate = Gate(
        "api-address-announced",
        GateArgs(
            spec=AddressAnnounced(
                logs=access.logs(control_plane),
                leaving=access.logs(bootstrap).nodes,
                address=address,
                mode=api.mode,
                program=kube_vip.PROGRAM,
            ),
            timeout_seconds=settings.timeouts.install_complete,
        ),
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(after))),
    )
    return [gate]


def ingress_answers(
    settings: Settings,
    address: pulumi.Output[str] | None,
    *,
    access: Access,
    machines: Mapping[Node, Machine],
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> list[Gate]:
    """The gate that waits until a router answers at the address of ingress; empty if it has no address of its own."""
    if address is None:
        return []
    gate = Gate(
        "ingress-answers",
        GateArgs(
            spec=IngressAnswers(address=address, domain=f"apps.{settings.domain}", logs=access.logs(machines)),
            timeout_seconds=settings.timeouts.install_complete,
            gives_up_with=["nodes-ready"],
        ),
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(after))),
    )
    return [gate]
