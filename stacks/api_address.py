"""From settings to the API's own address: where it comes from, and what announces it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from metal_ipi.components.cluster.pool import Access
from metal_ipi.components.endpoints import kube_vip
from metal_ipi.components.machines.contract import Machine, Platform
from metal_ipi.components.machines.node import Node
from metal_ipi.provider.types import AddressAnnounced, Gate, GateArgs
from metal_ipi.stacks.names import API_ADDRESS
from metal_ipi.stacks.sections.api_address import DnsRoundRobin, ExternalApi, KubeVip
from metal_ipi.stacks.settings import Settings


def api_address(settings: Settings, platform: Platform) -> pulumi.Output[str] | None:
    """The API's own address; None where its names resolve to the machines that serve it."""
    api = settings.api_address
    if isinstance(api, DnsRoundRobin):
        return None
    return platform.reserved[API_ADDRESS].first if api.address is None else pulumi.Output.from_input(api.address)


def ipv6(settings: Settings) -> dict[str, str]:
    """The API's own IPv6 address, by its name; nothing where it has none."""
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
    """The gate that waits until the control plane announces the API's address; none where nothing announces it."""
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
